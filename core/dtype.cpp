// core/dtype.cpp - dtype and device names.
#include <cstdint>
#include <cstdlib>
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

/// Up to eight characters as a number, 0 for more: many calls name a dtype, and comparing the text with each name would
/// cost as much as an op.
constexpr std::uint64_t word(const char* text, std::size_t size) {
  if (size > 8) return 0;
  std::uint64_t w = 0;
  for (std::size_t i = 0; i < size; ++i) w |= std::uint64_t(static_cast<unsigned char>(text[i])) << (8 * i);
  return w;
}
struct Words {
  std::uint64_t of[DType::kCount] = {};
};
constexpr Words kWords = [] {
  Words words;
  for (int i = 1; i < DType::kCount; ++i) words.of[i] = word(kNames[i], std::char_traits<char>::length(kNames[i]));
  return words;
}();

[[noreturn]] __attribute__((noinline, cold)) void fail_unknown(const std::string& name) {
  if (name == "string")
    fail<TypeError>({}, "dtype 'string': tensors hold numbers and bools, not text", kRemedy,
                    "feed integers instead, ids of words or bytes as uint8");
  std::string known;
  for (int i = 1; i < DType::kCount; ++i) known += std::string(i > 1 ? ", " : "") + kNames[i];
  fail<TypeError>({}, "dtype '", name, "' is unknown", kExpected, "there are ", known);
}

}  // namespace

std::size_t Name::size() const { return text_ ? strnlen(text_, bound_) : 0; }

const char* DType::name() const { return kNames[code_]; }

DType DType::parse(Name name) {
  if (!name.given()) return DType();
  std::uint64_t w = word(name.data(), name.size());
  for (int i = kCount - 1; w && i > 0; --i)  // from the end, where the floats are, which are the most common
    if (w == kWords.of[i]) return DType(static_cast<Code>(i));
  fail_unknown(string_of(name));
}

std::ostream& operator<<(std::ostream& os, DType dtype) { return os << dtype.name(); }

Device Device::parse(Name name) {
  if (!name.given()) return Device();
  const std::string t = string_of(name);
  if (t == "cpu") return cpu;
  if (t == "cuda") return Device(kCuda, 0);
  if (t.size() > 5 && t.compare(0, 5, "cuda:") == 0) {
    char* end;
    long index = std::strtol(t.c_str() + 5, &end, 10);
    if (!*end && index >= 0 && index < 256) return Device(kCuda, static_cast<std::uint8_t>(index));
  }
  fail<DeviceError>({}, "device '", t, "' is unknown", kExpected, "there are 'cpu' and 'cuda:N'");
}

std::ostream& operator<<(std::ostream& os, Device device) {
  if (device.type() == Device::kNone) return os << "none";
  if (device.type() == Device::kCpu) return os << "cpu";
  return os << "cuda:" << device.index();
}

}  // namespace kassette
