// ops/sparse/sparse_index.h - the indices of a sparse tensor: checked once, and sorted once for products.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "core/impl.h"
#include "ops/sparse/sparse_view.h"

namespace kassette::ops {

/// The entries of a matrix grouped by one of its axes: compressed rows (CSR) for axis 0, compressed columns for axis 1.
/// Line r has the entries [starts[r], starts[r + 1]), in their original order.
struct SparseLines {
  std::int64_t n;       // lines
  Ref<Storage> memory;  // of starts, others and order, in this order
  const std::int64_t* starts;
  const std::uint32_t* others;  // per entry: its index along the other axis
  const std::uint32_t* order;   // per entry: its position among the values; null if they are in this order already
};

/// The entries grouped by element of the dense tensor, since several entries may add to one. Element elements[i] has
/// the entries [starts[i], starts[i + 1]) of `order`, in their original order.
struct SparseElements {
  std::int64_t n;       // elements that have entries
  Ref<Storage> memory;  // of starts, elements and order, in this order
  const std::int64_t* starts;
  const std::int64_t* elements;  // row-major numbers, ascending
  const std::uint32_t* order;
};

// Note [Index storage]
// The output of the op sparse_coo is in memory that a SparseIndex owns. To other ops it is an ordinary int64 tensor;
// the kernels of products find the SparseIndex through the storage, and in it the compressed rows and columns, which
// are computed on first use. So a constant matrix is sorted once, whether its indices are used eagerly, as a constant
// of a plan, or as an argument of a function.
//
// Indices are in the memory of the CPU, wherever the values are: they have to be checked and sorted before a kernel may
// use them. The parts that kernels of a device need are copied to the device once and cached here.

/// Owns checked indices, and caches their sorted forms and the copies on devices.
class SparseIndex {
 public:
  /// Wraps indices (count, rank) in a storage that owns a SparseIndex. Throws ValueError in the name of `what` if one
  /// is out of range.
  static Ref<Storage> own(const char* what, Ref<Storage> memory, std::int64_t offset, std::int64_t count,
                          const TensorSpec& shape);
  /// The SparseIndex that owns the storage of `indices`. If none does, makes one, which `made` then owns.
  static const SparseIndex& owner_of(const char* what, const TensorDesc& indices, const TensorSpec& shape,
                                     std::unique_ptr<SparseIndex>& made);

  std::int64_t count() const { return count_; }
  int rank() const { return shape_.rank; }
  const TensorSpec& shape() const { return shape_; }
  const std::int64_t* at(std::int64_t k) const { return at_ + k * shape_.rank; }
  /// True if the entries are sorted by their index of axis 0.
  bool rising() const { return rising_; }
  /// The row-major number of the element of the dense tensor that entry k adds to.
  std::int64_t element(std::int64_t k) const {
    std::int64_t n = 0;
    for (int i = 0; i < shape_.rank; ++i) n = n * shape_.dims[i] + at(k)[i];
    return n;
  }
  /// The entries of a matrix grouped by axis 0 or 1.
  const SparseLines& lines(int axis) const;
  const SparseElements& elements() const;
  /// Pointers to a part in the memory of a device. They are valid as long as this object lives.
  SparseView on(Device device, SparseView::Part part) const;

 private:
  SparseIndex(const char* what, Ref<Storage> memory, std::int64_t offset, std::int64_t count, const TensorSpec& shape);
  static void release(void* index);
  bool is_for(const TensorDesc& indices, const TensorSpec& shape) const;
  SparseLines sorted(int axis) const;
  SparseElements grouped() const;

  Ref<Storage> memory_;
  const std::int64_t* at_;
  std::int64_t count_;
  TensorSpec shape_;
  bool rising_ = true;
  mutable std::mutex mutex_;
  mutable std::unique_ptr<SparseLines> made_[2];
  mutable std::atomic<const SparseLines*> lines_[2] = {};
  mutable std::unique_ptr<SparseElements> elements_;
  /// A part of the indices, copied to a device.
  struct Copy {
    Device device;
    SparseView::Part part;
    Ref<Storage> memory;
  };
  mutable std::vector<Copy> copies_;
};

}  // namespace kassette::ops
