// ops/product/contraction.h - contractions of tensors with labelled axes (as in einsum), and their reduction to matrix
// products on any device.
#pragma once
#include <cstddef>
#include <optional>

#include "devices/cpu/blas.h"
#include "ops/engine/cotangent.h"
#include "ops/engine/op.h"
#include "ops/shape/strided.h"

namespace kassette::ops {
using devices::BatchStrides;
using devices::GemmShape;

// Note [Labelled axes]
// Every axis of a, b and the result carries a label, as in einsum. A label in all three is a batch axis, a label in a
// and b is summed over, and a label in the result and one of a and b is kept. All matrix products of the library and
// their adjoints have this form: the adjoint with respect to a contracts the cotangent with b, and its result has the
// labels of a. Labels depend on ranks only, never on sizes.
inline constexpr int kLabels = 16;
inline constexpr int kNewAxis = 15;  // the label of an axis of size 1 in the result that neither a nor b has

/// The public function that a contraction belongs to, for error messages.
enum class Caller : std::uint8_t { matmul, dot, batch_dot };

/// The labels of a tensor's axes.
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
  bool broadcast = false;  // batch axes of size 1 are broadcast
  struct Origin {
    Caller caller = Caller::matmul;
    Cotangent cotangent = Cotangent::neither;
  } origin;
};

/// Return the forms of dot and batch_dot for operands of known rank. Throw ValueError if the ranks or axes do not fit.
ContractionForm dot_form(const TensorSpec& x, const TensorSpec& y);
/// A value for batch_dot's y_axis: contract the last axis if y is a matrix, else the second to last.
inline constexpr int kDefaultAxis = -1000;
ContractionForm batch_dot_form(const TensorSpec& x, const TensorSpec& y, int x_axis, int y_axis);

/// The common case, a product of two matrices, recognised without a plan. If `plain`, ta and tb say which factors are
/// transposed.
struct MatrixForm {
  bool plain, swapped, ta, tb;  // swapped: the second operand is the left factor; ta and tb count after the swap
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

/// Copies an operand with its axes in another order. Each device implements it.
class Rearranger {
 public:
  /// Returns a copy of `count` elements of `item` bytes each, which lives as long as the rearranger.
  virtual const std::byte* copy(const Strided& layout, const std::byte* from, std::int64_t count, int item) = 0;

 protected:
  ~Rearranger() = default;
};

/// A contraction as a batch of matrix products. a and b point to the left and right factors, copied if they
/// had to be rearranged.
struct ContractionPlan {
  GemmShape product;
  BatchStrides batch;
  const std::byte *a, *b;
};
/// Plans a call; operands and result must not be empty.
ContractionPlan plan_contraction(const OpCall& call, const std::byte* a, const std::byte* b, int item,
                                 Rearranger& rearranger);

/// The plan of a product to which `bias` can be added, a number for each column of a single matrix, if no operand has
/// to be copied: for OpDef::with_bias.
std::optional<ContractionPlan> plan_with_bias(const OpCall& call, const TensorDesc& bias);

}  // namespace kassette::ops
