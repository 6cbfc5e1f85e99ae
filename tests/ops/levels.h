// tests/ops/levels.h - running something at every CPU level, and on another number of threads.
#pragma once
#include <cstring>
#include <vector>

#include "devices/cpu/level.h"
#include "devices/cpu/threads.h"
#include "ops/operand.h"
#include "tests/catch.h"

namespace kassette {
namespace test {

template <class T>
Tensor tensor_of(const std::vector<T>& v) {
  Tensor t = empty_tensor(Spec(dtype_of(static_cast<const T*>(nullptr)), {static_cast<std::int64_t>(v.size())}));
  std::memcpy(mutable_data<T>(t), v.data(), v.size() * sizeof(T));
  return t;
}

/// At the end of the scope, the CPU level and the number of threads are as they were.
struct CpuSettings {
  Level level = cpu_level();
  int threads = num_threads();
  ~CpuSettings() {
    set_cpu_level(level);
    set_num_threads(threads);
  }
};

/// Runs the body at every level that this CPU has.
template <class F>
void at_every_level(F f) {
  CpuSettings restore;
  for (Level level : {Level::sse2, Level::avx2, Level::avx512})
    if (set_cpu_level(level)) {
      INFO(level_name(level));
      f(level);
    }
}

}  // namespace test
}  // namespace kassette
