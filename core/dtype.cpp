// core/dtype.cpp - dtype and device names.
#include <charconv>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <ostream>

#include <kassette/device.h>
#include <kassette/dtype.h>

#include "core/text.h"

namespace kassette {
namespace {

#define KASSETTE_NAME(constant, code, type, name) , name
constexpr const char* kNames[] = {"none" KASSETTE_DTYPES(KASSETTE_NAME)};
#undef KASSETTE_NAME
static_assert(std::size(kNames) == DType::kCount);

/// A text of up to eight characters as a number, 0 for a longer one: many calls name a dtype, and comparing the text
/// with each name would cost as much as an op. The size tells a NUL at the end of a text from nothing there.
struct Word {
  constexpr Word(const char* text, std::size_t n) : size(n) {
    for (std::size_t i = 0; n <= 8 && i < n; ++i)
      characters |= std::uint64_t(static_cast<unsigned char>(text[i])) << (8 * i);
  }
  bool operator==(const Word&) const = default;
  std::uint64_t characters = 0;
  std::size_t size;
};
#define KASSETTE_WORD(constant, code, type, name) , Word(name, std::char_traits<char>::length(name))
constexpr Word kWords[] = {Word("", 0) KASSETTE_DTYPES(KASSETTE_WORD)};
#undef KASSETTE_WORD

[[noreturn]] __attribute__((noinline, cold)) void fail_unknown(const std::string& name) {
  if (name == "string")
    fail<TypeError>({}, "dtype 'string': tensors hold numbers and bools, not text", kRemedy,
                    "feed integers instead, ids of words or bytes as uint8");
  std::string known;
  for (int i = 1; i < DType::kCount; ++i) known += std::string(i > 1 ? ", " : "") + kNames[i];
  fail<TypeError>({}, "dtype '", name, "' is unknown", kExpected, "there are ", known);
}

}  // namespace

std::size_t Name::size() const {
  if (bound_ & kWhole && bound_ != kOpen) return bound_ & ~kWhole;
  return text_ ? strnlen(text_, bound_) : 0;
}

const char* DType::name() const { return kNames[code_]; }

DType DType::parse(Name name) {
  if (!name.given()) return DType();
  const Word given(name.data(), name.size());
  for (int i = kCount - 1; given.characters && i > 0; --i)  // from the end: floats are the most common
    if (given == kWords[i]) return DType(static_cast<Code>(i));
  fail_unknown(std::string(name.data(), name.size()));
}

std::ostream& operator<<(std::ostream& os, DType dtype) { return os << dtype.name(); }

Device Device::parse(Name name) {
  if (!name.given()) return Device();
  const std::string t = string_of(name);
  if (t == "cpu") return cpu;
  if (t == "cuda") return Device(kCuda, 0);
  if (t.size() > 5 && t.compare(0, 5, "cuda:") == 0) {
    std::uint8_t index = 0;
    auto [end, error] = std::from_chars(t.data() + 5, t.data() + t.size(), index);
    if (error == std::errc() && end == t.data() + t.size()) return Device(kCuda, index);
  }
  fail<DeviceError>({}, "device '", t, "' is unknown", kExpected, "there are 'cpu' and 'cuda:N'");
}

std::ostream& operator<<(std::ostream& os, Device device) {
  if (device.type() == Device::kNone) return os << "none";
  if (device.type() == Device::kCpu) return os << "cpu";
  return os << text("cuda:", device.index());
}

}  // namespace kassette
