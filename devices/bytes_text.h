// devices/bytes_text.h - byte counts in readable units, and the error for failed allocations.
#pragma once
#include <string>

#include <kassette/runtime.h>

namespace kassette::devices {

/// "512 bytes", "4.0 KiB", "1.5 GiB".
std::string bytes_text(std::int64_t bytes);
/// Throws MemoryError, which says how much was asked for, how much is in use, and the limit.
[[noreturn]] void fail_memory(Device device, std::int64_t asked, const MemoryStats& held);

}  // namespace kassette::devices
