// tests/environment.h - setting an environment variable for a scope.
#pragma once
#include <cstdlib>
#include <optional>
#include <string>

namespace kassette::test {

/// Sets an environment variable, or unsets it if `value` is null; the old value is restored at the end of the scope.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) {
    if (const char* was = std::getenv(name)) was_ = was;
    put(value);
  }
  ~Environment() { put(was_ ? was_->c_str() : nullptr); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  void put(const char* value) const {
    if (value) setenv(name_, value, 1);
    else unsetenv(name_);
  }
  const char* name_;
  std::optional<std::string> was_;
};

}  // namespace kassette::test
