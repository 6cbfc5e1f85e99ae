// tests/ops/levels.h - running something at every CPU level, and on another number of threads.
#pragma once
#include <cstring>
#include <vector>

#include "devices/cpu/level.h"
#include "devices/cpu/threads.h"
#include "ops/engine/operand.h"
#include "tests/catch.h"
#include "tests/settings.h"

namespace kassette {
namespace test {

template <class T>
Tensor tensor_of(const std::vector<T>& v) {
  Tensor t =
      ops::empty_tensor(TensorSpec(dtype_of(static_cast<const T*>(nullptr)), {static_cast<std::int64_t>(v.size())}));
  std::memcpy(ops::mutable_data<T>(t), v.data(), v.size() * sizeof(T));
  return t;
}

/// Runs the body at every level that this CPU has.
template <class F>
void at_every_level(F f) {
  SettingsScope restore;
  for (devices::Level level : devices::kLevels)
    if (devices::set_cpu_level(level)) {
      INFO(devices::level_name(level));
      f(level);
    }
}

}  // namespace test
}  // namespace kassette
