// nn_backend/named.cpp - messages of compositions.
#include "nn_backend/named.h"

#include <cstring>

#include "core/text.h"

namespace kassette {
namespace backend {

void rethrow_as(const char* what) {
  rethrow_edited([what](const char* message) -> std::string {
    std::size_t name = std::strspn(message, "abcdefghijklmnopqrstuvwxyz_0123456789");
    bool named = name > 0 && message[name] == ':' && message[name + 1] == ' ';   // "cuda:0 is ..." names no function
    return named ? text(what, message + name) : message;
  });
}

}  // namespace backend
}  // namespace kassette
