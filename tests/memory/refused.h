// tests/memory/refused.h - allocations that fail, in a program that is linked with refused.cpp and --wrap.
#pragma once
#include <atomic>
#include <cstdint>

namespace kassette::test::allocations {

extern std::atomic<std::int64_t> left;  // until one fails; 0: none does
extern std::atomic<bool> failed;
extern bool all_after;  // and all that follow it

}  // namespace kassette::test::allocations
