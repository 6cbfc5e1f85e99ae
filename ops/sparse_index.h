// ops/sparse_index.h - the indices of a sparse tensor: checked once, and put in order once for products.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "core/impl.h"
#include "ops/sparse_view.h"

namespace kassette {

/// The entries of a matrix by one of its axes: those of line r are [starts[r], starts[r + 1]), in the order in which they were
/// listed. Compressed rows for axis 0, compressed columns for axis 1.
struct SparseLines {
  std::int64_t n;       // lines
  Ref<Storage> memory;  // starts, others and order, one after the other
  const std::int64_t* starts;
  const std::uint32_t* others;  // per entry: its index along the other axis
  const std::uint32_t* order;   // per entry: its place among the values; null where they are in this order already
};

/// The entries by the element of the dense tensor that they are part of: those of elements[i] are [starts[i], starts[i + 1]) of
/// `order`, in the order in which they were listed.
struct SparseElements {
  std::int64_t n;       // elements that have entries
  Ref<Storage> memory;  // starts, elements and order, one after the other
  const std::int64_t* starts;
  const std::int64_t* elements;  // row-major, rising
  const std::uint32_t* order;
};

// Note [Index storage]
// Indices that went through the op sparse_coo lie in memory that a SparseIndex owns: an ordinary int64 tensor to everybody
// else, but the kernels of products find the SparseIndex behind it and with it the compressed rows and columns, made when
// they are first asked for. So they are made once for a constant matrix whichever way its indices travel: eagerly, as a
// constant of a plan, or fed to a function.
// Indices are always in memory of the CPU, wherever the values are: they have to be checked and put in order before a kernel
// may use them. What kernels of a device read of them is copied there once and kept with them.
class SparseIndex {
 public:
  /// Takes over indices (count, rank) within the shape. Throws ValueError in the name of `what` for one that is out of range.
  static Ref<Storage> own(const char* what, Ref<Storage> memory, std::int64_t offset, std::int64_t count,
                          const TensorSpec& shape);
  /// What is behind an array of indices; made for the occasion, and put in `made`, where nothing is.
  static const SparseIndex& behind(const char* what, const Body& indices, const TensorSpec& shape,
                                   std::unique_ptr<SparseIndex>& made);

  std::int64_t count() const { return count_; }
  int rank() const { return shape_.rank; }
  const TensorSpec& shape() const { return shape_; }
  const std::int64_t* at(std::int64_t k) const { return at_ + k * shape_.rank; }
  /// Whether the entries come by rising index of axis 0.
  bool rising() const { return rising_; }
  /// Entry k as the number of an element of the dense tensor.
  std::int64_t element(std::int64_t k) const {
    std::int64_t n = 0;
    for (int i = 0; i < shape_.rank; ++i) n = n * shape_.dims[i] + at(k)[i];
    return n;
  }
  /// The entries of a matrix by axis 0 or 1.
  const SparseLines& lines(int axis) const;
  const SparseElements& elements() const;
  /// A part in memory of a device; as long as this lives.
  SparseView on(Device device, SparseView::Part part) const;

 private:
  SparseIndex(const char* what, Ref<Storage> memory, std::int64_t offset, std::int64_t count, const TensorSpec& shape);
  static void release(void* index);
  bool is_for(const Body& indices, const TensorSpec& shape) const;
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
  struct Copy {
    Device device;
    SparseView::Part part;
    Ref<Storage> memory;
  };
  mutable std::vector<Copy> copies_;
};

}  // namespace kassette
