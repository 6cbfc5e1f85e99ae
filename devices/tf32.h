// devices/tf32.h - the flag behind set_allow_tf32, which the device library reads.
#pragma once
#include <atomic>

namespace kassette::devices {

std::atomic<bool>& tf32_flag();

}  // namespace kassette::devices
