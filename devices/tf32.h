// devices/tf32.h - where the device library reads what set_allow_tf32 has set.
#pragma once
#include <atomic>

namespace kassette {

std::atomic<bool>& tf32_flag();

}  // namespace kassette
