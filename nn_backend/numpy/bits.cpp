// nn_backend/numpy/bits.cpp - numbers as bits: how many are set, eight of them in a byte, the distance to the next one.
#include <kassette/numpy/mathematics.h>

#include <cmath>
#include <string>

#include "core/text.h"
#include "nn_backend/numpy/arguments.h"
#include "nn_backend/numpy/axes.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/shaping.h"

namespace kassette {
namespace numpy {
namespace {

using ops::attribute_errors;

/// The places of a byte's bits, from the largest on, or from the smallest.
Tensor bit_places(const char* what, const Name& order, const Tensor& like) {
  const std::string text = Access::text(order);
  if (text != "big" && text != "little")
    fail<ValueError>({what, "bitorder"}, "is '", text, "'", kExpected, "it must be 'big' or 'little'");
  const Tensor places = places_below(ops::scalar_tensor(8, int64), like.device());
  return text == "big" ? 7 - places : places;
}

}  // namespace

Tensor bitwise_count(const Operand& x) {
  return of_array("bitwise_count", x, [](const Tensor& t) {
    if (!t.dtype().is_integer())
      fail<TypeError>({"bitwise_count", "x"}, "is ", t.dtype(), kExpected, "it must be an integer dtype", kRemedy,
                      "cast it first (K::cast)");
    // The sums of 2, 4 and 8 neighbours, then of all bytes. The smallest int64 stays negative: what the shifts bring
    // in from its sign is masked.
    Tensor v = ops::abs(ops::cast(t, int64));
    v = v - ops::bitwise_and(ops::right_shift(v, 1), 0x5555555555555555);
    v = ops::bitwise_and(v, 0x3333333333333333) + ops::bitwise_and(ops::right_shift(v, 2), 0x3333333333333333);
    v = ops::bitwise_and(v + ops::right_shift(v, 4), 0x0f0f0f0f0f0f0f0f);
    return ops::cast(ops::right_shift(v * 0x0101010101010101, 56), uint8);
  });
}
Tensor packbits(const Operand& x, const Axes& axis, Name bitorder) {
  return of_array("packbits", x, [&](Tensor t) {
    if (t.dtype().is_float())
      fail<TypeError>({"packbits", "x"}, "is ", t.dtype(), kExpected, "it must be bool or an integer dtype");
    (void)known_rank(t, {"packbits", "x"});
    const int along = one_axis_of("packbits", t, axis);
    const Tensor places = bit_places("packbits", bitorder, t), last = with_last(t, along);
    const int rank = Access::desc(last).rank;
    const std::int64_t n = known_size(t, along, {"packbits", "x"});
    ops::Pads more;
    more.rank = rank;
    more.after[rank - 1] = (8 - n % 8) % 8;
    const Tensor bits = ops::pad(ops::cast(ops::not_equal(last, 0), int64), more);
    SizesOf shape;
    for (int i = 0; i + 1 < rank; ++i) shape.push_size(bits, i);
    shape.push((n + 7) / 8);
    shape.push(8);
    const Tensor bytes = ops::sum(ops::left_shift(ops::reshape(bits, shape), places), -1);
    return with_last_at(ops::cast(bytes, uint8), along);
  });
}
Tensor unpackbits(const Operand& x, const Axes& axis, const Scalar& count, Name bitorder) {
  constexpr const char* kWhat = "unpackbits";
  return attribute_errors(kWhat, [&] {
    const ArrayArg array(x, {kWhat, "x"}, uint8);
    Tensor t = array;
    if (t.dtype() != uint8) fail<TypeError>({kWhat, "x"}, "is ", t.dtype(), kExpected, "it must be uint8");
    const int along = one_axis_of(kWhat, t, axis);
    const Tensor places = bit_places(kWhat, bitorder, t), last = with_last(t, along);
    const int rank = Access::desc(last).rank;
    const Tensor bits = ops::right_shift(ops::expand_dims(ops::cast(last, int64), -1), places);
    Tensor y = ops::cast(ops::bitwise_and(ops::flatten(bits, rank - 1), 1), uint8);
    if (!count.is_none()) {
      const std::int64_t n = ops::scalar_tensor(count, int64, {kWhat, "count"}).item<std::int64_t>();
      const std::int64_t size = known_size(y, rank - 1, {kWhat, "x"});
      if (n > size) {
        ops::Pads more;
        more.rank = rank;
        more.after[rank - 1] = n - size;
        y = ops::pad(y, more);
      }
      y = slice_along(y, rank - 1, 0, static_cast<long>(n));
    }
    return with_last_at(y, along);
  });
}
Tensor spacing(const Operand& x) {
  return of_array("spacing", x, [](const Tensor& t) {
    check_float(t, {"spacing", "x"});
    const Tensor away = ops::where(ops::less(t, 0), t + t - 1, t + t + 1);
    return nextafter(t, away) - t;
  });
}

}  // namespace numpy
}  // namespace kassette
