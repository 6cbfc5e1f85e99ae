// tests/messages.h - what tests take from the message of an error before they compare it.
#pragma once
#include <string>

namespace kassette::test {

/// The message without the part that only a replay adds: which step of which loop it was.
inline std::string without_steps(std::string message) {
  for (std::size_t at; (at = message.rfind(" (step ")) != std::string::npos;)
    message.erase(at, message.find(')', at) + 1 - at);
  return message;
}

}  // namespace kassette::test
