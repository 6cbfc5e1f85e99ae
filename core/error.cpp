// core/error.cpp - key functions of the exception classes.
#include <kassette/error.h>

#include <cstdlib>
#include <cstring>

namespace kassette {
namespace {

char* copy_text(const char* text) {
  std::size_t n = std::strlen(text) + 1;
  char* p = static_cast<char*>(std::malloc(n));
  if (p) std::memcpy(p, text, n);
  return p;
}

}  // namespace

Error::Error(const char* message) : message_(copy_text(message)) {}
Error::Error(const Error& other) noexcept : std::exception(other), message_(copy_text(other.what())) {}
Error& Error::operator=(const Error& other) noexcept {
  if (this != &other) {
    std::free(message_);
    message_ = copy_text(other.what());
  }
  return *this;
}
Error::~Error() { std::free(message_); }
const char* Error::what() const noexcept { return message_ ? message_ : "kassette: out of memory"; }

ValueError::~ValueError() = default;
TypeError::~TypeError() = default;
AssertionError::~AssertionError() = default;
NotImplementedError::~NotImplementedError() = default;
RuntimeError::~RuntimeError() = default;
DeviceError::~DeviceError() = default;
MemoryError::~MemoryError() = default;

}  // namespace kassette
