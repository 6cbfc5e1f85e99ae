// devices/cpu/allocator.h - the source of large blocks of CPU memory.
#pragma once
#include "devices/block_cache.h"

namespace kassette::devices {

/// The system's memory: malloc below 2 MiB, mmap with huge pages from there on.
extern const MemorySource cpu_memory;

}  // namespace kassette::devices
