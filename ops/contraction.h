// ops/contraction.h - products of labelled axes, and how one becomes products of matrices on any device.
#pragma once
#include <cstddef>

#include "devices/cpu/blas.h"
#include "ops/op.h"
#include "ops/strided.h"

namespace kassette {

// Note [Labelled axes]
// Every axis of a, b and the result carries a label. A label of all three is a batch axis, one of a and b is summed over,
// one of a (or b) and the result stays. All products of the library and all their adjoints are of this form: the adjoint
// for a contracts the cotangent with b and gives the labels of a. Labels depend on ranks alone, never on sizes.
inline constexpr int kLabels = 16;
inline constexpr int kOne = 15;  // an axis of size 1 that the result has beside those of a and b

enum class User : std::uint8_t { matmul, dot, batch_dot };

struct Labels {
  std::uint8_t of[kMaxRank] = {};
  std::uint8_t rank = 0;
  bool operator==(const Labels&) const = default;
  void push(int label) { of[rank++] = static_cast<std::uint8_t>(label); }
};

/// The attributes of matmul_op.
struct ContractionForm {
  static constexpr const char* attrs_name = "matmul";
  Labels a, b, out;
  bool broadcast = false;  // a batch axis of size 1 meets any size
  User user = User::matmul;
};

/// The forms of dot and batch_dot for operands of known rank. Throws ValueError where the ranks or axes do not fit.
ContractionForm dot_form(const TensorSpec& x, const TensorSpec& y);
/// y_axis kUsualAxis: the last axis of a matrix, else the last but one.
inline constexpr int kUsualAxis = -1000;
ContractionForm batch_dot_form(const TensorSpec& x, const TensorSpec& y, int x_axis, int y_axis);

/// A product of two matrices into a matrix, without decoding: transposes as flags.
struct MatrixForm {
  bool plain, swapped, ta, tb;  // swapped: the rows of the result are of the second operand
  explicit MatrixForm(const Attrs& attrs) : MatrixForm(attrs.as<ContractionForm>()) {}
  explicit MatrixForm(const ContractionForm& f) : plain(false), swapped(false), ta(false), tb(false) {
    if (f.a.rank != 2 || f.b.rank != 2 || f.out.rank != 2) return;
    int a0 = f.a.of[0], a1 = f.a.of[1], b0 = f.b.of[0], b1 = f.b.of[1], row = f.out.of[0], col = f.out.of[1];
    swapped = row == b0 || row == b1;
    if (swapped) std::swap(a0, b0), std::swap(a1, b1);
    ta = a1 == row;
    tb = b0 == col;
    plain = (a0 == row || ta) && (b1 == col || tb) && row != b0 && row != b1 && col != a0 && col != a1;
  }
};

/// Puts the axes of an operand in another order, for a device.
class Rearranger {
 public:
  /// A copy of `count` elements of `item` bytes that lives as long as the rearranger.
  virtual const std::byte* copy(const Strided& layout, const std::byte* from, std::int64_t count, int item) = 0;

 protected:
  ~Rearranger() = default;
};

/// What has to be multiplied: matrices that repeat. a and b are already in the order of the product.
struct ContractionPlan {
  GemmShape product;
  BatchStrides repeats;
  const std::byte *a, *b;
};
/// For a call whose operands and result are not empty.
ContractionPlan plan_contraction(const OpCall& call, const std::byte* a, const std::byte* b, int item,
                                 Rearranger& rearranger);

}  // namespace kassette
