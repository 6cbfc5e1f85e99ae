// core/error.cpp - the exception classes, and errors that many functions throw.
#include <kassette/error.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "core/print/printable.h"
#include "core/text.h"

namespace kassette {
namespace {

constexpr int kParts = 6;  // what(), function(), argument(), given(), expected(), remedy()

const char* part(const char* parts, int i) noexcept {
  if (!parts) return "";
  for (; i; --i) parts += std::strlen(parts) + 1;
  return parts;
}

/// A copy in memory from malloc; null if none is left.
char* copy_of(const char* parts, std::size_t bytes) noexcept {
  char* p = static_cast<char*>(std::malloc(bytes));
  if (p) std::memcpy(p, parts, bytes);
  return p;
}
char* copy_of(const char* parts) noexcept {
  return parts ? copy_of(parts, static_cast<std::size_t>(part(parts, kParts) - parts)) : nullptr;
}

/// The part of a message that says whose it is.
std::string head(const char* function, const char* argument) {
  std::string said = function;
  if (*function) said += ": ";
  said += argument;
  if (*argument) said += ' ';
  return said;
}

}  // namespace

Error::Error(const char* message) : Error("", "", message) {}
Error::Error(const char* function, const char* argument, const char* given, const char* expected, const char* remedy) {
  std::string joined = head(function, argument) + given;
  for (const char* more : {expected, remedy})
    if (*more) (joined += "; ") += more;
  for (const char* words : {"", function, argument, given, expected, remedy}) (joined += words) += '\0';
  parts_ = copy_of(joined.data(), joined.size());
}
Error::Error(const Error& other) noexcept : std::exception(other), parts_(copy_of(other.parts_)) {}
Error& Error::operator=(const Error& other) noexcept {
  if (this != &other) {
    std::free(parts_);
    parts_ = copy_of(other.parts_);
  }
  return *this;
}
Error::~Error() { std::free(parts_); }
const char* Error::what() const noexcept { return parts_ ? parts_ : "kassette: out of memory"; }
const char* Error::function() const noexcept { return part(parts_, 1); }
const char* Error::argument() const noexcept { return part(parts_, 2); }
const char* Error::given() const noexcept { return part(parts_, 3); }
const char* Error::expected() const noexcept { return part(parts_, 4); }
const char* Error::remedy() const noexcept { return part(parts_, 5); }

void fail_empty(const At& at) { fail<ValueError>(at, *at.argument ? "is " : "", kEmptyTensor); }
void fail_not_float(const At& at, DType dtype) {
  const bool named = *at.argument;
  fail<TypeError>(at, named ? "is " : "", dtype, named ? ", not" : " is not", " a float dtype", kRemedy,
                  "cast it first (K::cast)");
}

std::string leaf_text(const Cell& leaf) { return text(leaf.name ? text('\'', leaf.name, "' ") : "", leaf.spec); }
std::string variable_text(const Cell* variable) {
  return variable && variable->name ? text("the variable '", variable->name, '\'') : "the variable";
}
void fail_shapes(const At& at, const Cell* variable, const TensorSpec& spec, const TensorSpec& value) {
  fail<ValueError>(at, *at.argument ? kIsRefused : "", variable_text(variable), " is ", spec, ", the value ", value,
                   kExpected, "shapes must be equal");
}
void fail_unset(const At& at, const Cell& variable) {
  fail<RuntimeError>(at, *at.argument ? kIsRefused : "", "the variable ", leaf_text(variable), " has no value yet",
                     kRemedy, "give it one with K::set_value");
}

void ErrorAccess::set(Error& e, const char* function, const char* argument, const std::string& given) {
  if (!e.parts_) return;
  Error renamed(function, argument, given.c_str(), e.expected(), e.remedy());
  if (renamed.parts_) std::swap(e.parts_, renamed.parts_);  // else there is no memory: the old name is better than none
}

void check_text(Name name) {
  if (!name.given()) return;
  const std::string_view given(name.data(), name.size());
  if (const std::size_t at = given.find('\0'); at != given.npos)
    fail<ValueError>({}, "the text '", excerpt(std::string(given)), "' has a NUL at byte ", at, kExpected,
                     "names, paths and other texts have none");
}
std::string string_of(Name name) {
  check_text(name);
  return name.given() ? std::string(name.data(), name.size()) : std::string();
}

const char* errno_text(int error) noexcept {
  const char* text = ::strerrordesc_np(error);
  return text ? text : "unknown error";
}

ValueError::~ValueError() = default;
TypeError::~TypeError() = default;
AssertionError::~AssertionError() = default;
NotImplementedError::~NotImplementedError() = default;
RuntimeError::~RuntimeError() = default;
DeviceError::~DeviceError() = default;
MemoryError::~MemoryError() = default;

}  // namespace kassette
