// include/kassette/numpy/creation.h - NumPy's functions that make arrays.
#ifndef KASSETTE_NUMPY_CREATION_H
#define KASSETTE_NUMPY_CREATION_H
#include <kassette/api.h>
#include <kassette/none.h>

namespace kassette {
namespace numpy {

// The results are plain tensors on the default device, never variables. Their dtype is floatx unless it is given or
// said otherwise. A shape may hold unknown sizes and tensors.

/// A tensor with that value. Containers and arrays of other libraries keep their dtype; numbers and lists of numbers
/// get floatx. A tensor stays what it is, with its gradient.
KASSETTE_API Tensor array(const Operand& x, DType dtype = None);
inline Tensor asarray(const Operand& x, DType dtype = None) { return array(x, dtype); }
/// x as another dtype. Floats to integers truncate; gradients flow between floats.
KASSETTE_API Tensor astype(const Operand& x, DType dtype);
/// Tensors of zeros, of ones, and of whatever the memory holds.
KASSETTE_API Tensor zeros(const Dims& shape, DType dtype = None);
KASSETTE_API Tensor ones(const Dims& shape, DType dtype = None);
KASSETTE_API Tensor empty(const Dims& shape, DType dtype = None);
/// `value`, which is a number or broadcasts to the shape, everywhere. Its dtype is that of `value`.
KASSETTE_API Tensor full(const Dims& shape, const Operand& value, DType dtype = None);
/// Tensors with the shape and dtype of x.
KASSETTE_API Tensor zeros_like(const Operand& x, DType dtype = None);
KASSETTE_API Tensor ones_like(const Operand& x, DType dtype = None);
KASSETTE_API Tensor empty_like(const Operand& x, DType dtype = None);
KASSETTE_API Tensor full_like(const Operand& x, const Operand& value, DType dtype = None);
/// A matrix (n, m), square unless m is given, with ones on its diagonal k: above the main one if k is positive.
KASSETTE_API Tensor eye(std::int64_t n, Scalar m = None, std::int64_t k = 0, DType dtype = None);
KASSETTE_API Tensor identity(std::int64_t n, DType dtype = None);

/// start, start + step, ... before stop; with one argument, 0 to start - 1. int64 if all three are integers.
KASSETTE_API Tensor arange(const Operand& start, const Operand& stop = None, const Operand& step = 1,
                           DType dtype = None);
/// The arguments of linspace and its relatives by name. Without endpoint, stop is not among the results.
struct SpaceOptions {
  Named only_by_name{0};
  bool endpoint = true;
  DType dtype = None;
  int axis = 0;
};
/// `num` numbers at equal distances from start to stop, which are numbers or tensors that broadcast, along a new axis.
KASSETTE_API Tensor linspace(const Operand& start, const Operand& stop, std::int64_t num = 50,
                             const SpaceOptions& options = {});
/// base raised to the powers linspace(start, stop, num).
KASSETTE_API Tensor logspace(const Operand& start, const Operand& stop, std::int64_t num = 50, double base = 10,
                             const SpaceOptions& options = {});
/// Numbers from start to stop, each the same multiple of the one before it. Start and stop have the same sign.
KASSETTE_API Tensor geomspace(const Operand& start, const Operand& stop, std::int64_t num = 50,
                              const SpaceOptions& options = {});

/// The arguments of meshgrid by name: `indexing` is "xy" or "ij"; sparse results have size 1 along the other axes.
struct MeshgridOptions {
  Named only_by_name{0};
  Name indexing = "xy";
  bool sparse = false;
};
/// The coordinates of the points of a grid, from those along each axis. With "xy" the first two axes are exchanged.
KASSETTE_API Tensors meshgrid(const Tensors& x, const MeshgridOptions& options = {});
/// int64: the indices of a grid of that shape, (rank, shape...).
KASSETTE_API Tensor indices(const Dims& shape);
/// f of the indices of a grid: a float tensor for each axis.
KASSETTE_API Tensor fromfunction(Callable<Tensor(const Tensors&)> f, const Dims& shape, DType dtype = None);
/// The powers x^(n-1), ..., x, 1 of a vector as columns, n is its length unless given; 1, x, ... if increasing.
KASSETTE_API Tensor vander(const Operand& x, Scalar n = None, bool increasing = false);

/// Windows of m elements, for spectra: Hann, Hamming, Blackman, Bartlett, and Kaiser with its shape beta.
KASSETTE_API Tensor hanning(std::int64_t m);
KASSETTE_API Tensor hamming(std::int64_t m);
KASSETTE_API Tensor blackman(std::int64_t m);
KASSETTE_API Tensor bartlett(std::int64_t m);
KASSETTE_API Tensor kaiser(std::int64_t m, double beta);

}  // namespace numpy
}  // namespace kassette

#endif  // KASSETTE_NUMPY_CREATION_H
