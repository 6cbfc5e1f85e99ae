// include/kassette/error.h - the exceptions. Every message is one complete line.
#ifndef KASSETTE_ERROR_H
#define KASSETTE_ERROR_H
#include <exception>

#include <kassette/export.h>

namespace kassette {

/// Base of all errors thrown by kassette. Destructors live in the library, so that catch matches across library
/// boundaries.
class KASSETTE_API Error : public std::exception {
 public:
  explicit Error(const char* message);
  /// The message is made of the parts, "function: argument given; expected; remedy"; any of them may be "".
  Error(const char* function, const char* argument, const char* given, const char* expected = "",
        const char* remedy = "");
  Error(const Error& other) noexcept;
  Error& operator=(const Error& other) noexcept;
  ~Error() override;
  /// The message: one complete line.
  const char* what() const noexcept override;
  /// The function that the user called, such as "dot"; "" for an error that belongs to none.
  const char* function() const noexcept;
  /// The argument at fault: its name in the header, such as "x", or its place in a list, such as "input 0". "" if no
  /// argument is at fault, or if several do not fit together.
  const char* argument() const noexcept;
  /// What was given, or what happened: "is -1".
  const char* given() const noexcept;
  /// What must be instead: "it must be at least 1". "" where given() says it.
  const char* expected() const noexcept;
  /// What to do about it: "cast it first (K::cast)"; "" if there is nothing to say.
  const char* remedy() const noexcept;

 private:
  friend struct ErrorAccess;
  char* parts_;  // what() and then the parts, each with its 0; null if there was no memory
};

/// A bad value or shape (Keras' ValueError).
class KASSETTE_API ValueError : public Error {
 public:
  using Error::Error;
  ~ValueError() override;
};
/// An argument of a wrong kind or dtype.
class KASSETTE_API TypeError : public Error {
 public:
  using Error::Error;
  ~TypeError() override;
};
/// A structural precondition that does not hold (Keras' AssertionError).
class KASSETTE_API AssertionError : public Error {
 public:
  using Error::Error;
  ~AssertionError() override;
};
/// Something that has a name in the API but is not supported.
class KASSETTE_API NotImplementedError : public Error {
 public:
  using Error::Error;
  ~NotImplementedError() override;
};
/// A failure that depends on the state of the program.
class KASSETTE_API RuntimeError : public Error {
 public:
  using Error::Error;
  ~RuntimeError() override;
};
/// A device that is absent or failed.
class KASSETTE_API DeviceError : public Error {
 public:
  using Error::Error;
  ~DeviceError() override;
};
/// An allocation that failed; the message says how much was asked for and how much is held.
class KASSETTE_API MemoryError : public Error {
 public:
  using Error::Error;
  ~MemoryError() override;
};

}  // namespace kassette

#endif  // KASSETTE_ERROR_H
