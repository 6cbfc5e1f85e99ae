// nn_backend/named.cpp - messages of compositions.
#include "nn_backend/named.h"

#include <cstring>

#include "core/text.h"

namespace kassette {
namespace backend {
namespace {

template <class E>
[[noreturn]] void renamed(const char* what, const E& e) {
  const char* message = e.what();
  std::size_t name = std::strspn(message, "abcdefghijklmnopqrstuvwxyz_0123456789");
  if (name == 0 || message[name] != ':') throw E(e);
  throw E(text(what, message + name).c_str());
}

}  // namespace

void rethrow_as(const char* what) {
  try {
    throw;
  } catch (const ValueError& e) {
    renamed(what, e);
  } catch (const TypeError& e) {
    renamed(what, e);
  } catch (const DeviceError& e) {
    renamed(what, e);
  } catch (const MemoryError& e) {
    renamed(what, e);
  } catch (const RuntimeError& e) {
    renamed(what, e);
  } catch (const NotImplementedError& e) {
    renamed(what, e);
  }
}

}  // namespace backend
}  // namespace kassette
