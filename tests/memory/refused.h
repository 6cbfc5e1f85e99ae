// tests/memory/refused.h - makes allocations fail, in a program that is linked with refused.cpp and --wrap.
#pragma once
#include <atomic>
#include <cstdint>

namespace kassette::test::allocations {

extern std::atomic<std::int64_t> left;  // allocations until one fails; 0: none fails
extern std::atomic<bool> failed;
extern bool all_after;  // all later allocations fail too

}  // namespace kassette::test::allocations
