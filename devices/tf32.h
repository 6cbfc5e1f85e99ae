// devices/tf32.h - the flags behind set_allow_tf32 and set_allow_cudnn, which the device library reads.
#pragma once
#include <atomic>

namespace kassette::devices {

std::atomic<bool>& tf32_flag();
std::atomic<bool>& cudnn_flag();

}  // namespace kassette::devices
