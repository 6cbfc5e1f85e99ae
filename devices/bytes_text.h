// devices/bytes_text.h - byte counts as people read them, and the error that names them.
#pragma once
#include <string>

#include <kassette/runtime.h>

namespace kassette {

/// "512 bytes", "4.0 KiB", "1.5 GiB".
std::string bytes_text(std::int64_t bytes);
/// Throws MemoryError: what was asked, what is held, the limit.
[[noreturn]] void fail_memory(Device device, std::int64_t asked, const MemoryStats& held);

}  // namespace kassette
