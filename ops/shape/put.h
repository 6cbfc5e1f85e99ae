// ops/shape/put.h - tensors with other values at some positions: what x.at(i, j, ...) is made of.
#pragma once
#include "ops/shape/shaping.h"

namespace kassette::ops {

/// x with `values` put at int64 `positions` in the axis and the joined ones after it (GatherAttrs); values have the
/// shape that gather() gives, or none. A position that occurs several times gets its values one after another, in their
/// order.
extern const OpDef index_set_op, index_add_op, index_multiply_op, index_min_op, index_max_op;
/// gather() where a position occurs for the last time, else 0: the adjoint of index_set.
extern const OpDef take_last_op;

/// The shape of gather(x, positions), as far as it is known.
void selected_spec(const TensorSpec& x, const TensorSpec& positions, const GatherAttrs& how, TensorSpec* out);

/// Into how many ranges the rows of a table are divided among threads that each read all positions: one if `bytes`,
/// which are put or summed in all, are few, or if the rows are short. Whose range a position is in cannot be predicted,
/// which costs more than to put a short row.
std::int64_t row_ranges(std::int64_t row_bytes, std::int64_t bytes);

/// The value that an element has after another one is put there.
enum class Put : std::uint8_t { set, add, multiply, min, max };

/// `old` and `v` combined; of half types as floats.
template <Put kPut, class T>
#ifdef __CUDACC__
__host__ __device__
#endif
    inline T
    put_together(T old, T v) {
  if constexpr (kPut == Put::set) return v;
  else if constexpr (kPut == Put::add) return static_cast<T>(old + v);
  else if constexpr (kPut == Put::multiply) return static_cast<T>(old * v);
  else if constexpr (kPut == Put::min) return v < old || v != v ? v : old;
  else return v > old || v != v ? v : old;
}

}  // namespace kassette::ops
