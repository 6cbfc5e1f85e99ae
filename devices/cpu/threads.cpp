// devices/cpu/threads.cpp - the one thread pool.
#include "devices/cpu/threads.h"

namespace kassette {

int num_threads() { return 1; }
void set_num_threads(int) {}
void parallel_parts(std::int64_t n, std::int64_t, RangeFn f) { f.call(f.object, 0, n); }

}  // namespace kassette
