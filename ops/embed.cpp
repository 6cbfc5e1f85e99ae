// ops/embed.cpp - the sum of tensors that are embedded in zeros, without the zeros.
#include <algorithm>

#include "devices/cpu/threads.h"
#include "ops/binary.h"
#include "ops/index.h"
#include "ops/operand.h"
#include "ops/strided.h"

namespace kassette {
namespace {

/// Adding zeros makes 0 of -0.
void put_part(const Embedded& e, DType dtype, std::byte* to) {
  constexpr std::int64_t kGrain = 1 << 14;   // elements that are worth a thread
  static constexpr double kZero = 0;         // of either width
  const Loop add = binary_row<Add>().loops->find(dtype)->by[2];   // the second operand is one
  const std::int64_t size = dtype.size();
  const Window& w = e.window;
  const Value v = read_value(Access::body(e.part));
  const auto* from = static_cast<const std::byte*>(v.storage->data) + v.offset;
  auto put = [&](std::int64_t row, std::int64_t begin, std::int64_t end) {
    const void* in[] = {from + (row * w.width + begin) * size, &kZero};
    add(in, to + (row * w.whole + w.first + begin) * size, end - begin, Attrs());
  };
  if (w.rows == 1) {
    parallel_for(w.width, kGrain, [&](std::int64_t begin, std::int64_t end) { put(0, begin, end); });
    return;
  }
  parallel_for(w.rows, std::max<std::int64_t>(1, kGrain / w.width), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) put(row, 0, w.width);
  });
}

}  // namespace

bool embeds(const Body& part) {
  return part.device == cpu && part.storage && !part.symbolic() && (part.dtype == float32 || part.dtype == float64);
}

Tensor embed_sum(const Spec& whole, const std::vector<Embedded>& parts) {
  Tensor sum = empty_tensor(whole);
  Body& out = Access::body(sum);
  std::int64_t covered = 0;
  for (const Embedded& e : parts) covered += e.window.width;
  if (covered != parts.front().window.whole) zero_bytes(out.data(), out.bytes());
  for (const Embedded& e : parts) put_part(e, out.dtype, out.data());
  return sum;
}

}  // namespace kassette
