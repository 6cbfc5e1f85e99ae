// ops/error_attribution.cpp - which function an error message names.
#include "ops/error_attribution.h"

#include <cstring>

#include "core/text.h"

namespace kassette {

const char kNamesOrigin[] = "kassette";

bool names_nobody(const char* message) { return std::strncmp(message, "out of memory", 13) == 0; }

std::string renamed(const char* message, const char* what) {
  if (what && names_nobody(message)) return text(what, ": ", message);
  std::size_t name = std::strspn(message, "abcdefghijklmnopqrstuvwxyz_0123456789");
  bool named =
      what && name > 0 && message[name] == ':' && message[name + 1] == ' ';  // "cuda:0 is ..." names no function
  return named ? what + std::string(message + name) : message;
}

void rethrow_attributed(const char* what) {
  if (!what) throw;
  rethrow_edited([what](const char* message) { return renamed(message, what); });
}

void rethrow_for(const char* op) {
  rethrow_edited([op](const char* message) { return names_nobody(message) ? renamed(message, op) : message; });
}

const char* function_name(std::int32_t code) {
  return code ? reinterpret_cast<const char*>(reinterpret_cast<std::intptr_t>(kNamesOrigin) + code) : nullptr;
}

}  // namespace kassette
