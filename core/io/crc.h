// core/io/crc.h - the checksum of zip files.
#pragma once
#include <cstddef>
#include <cstdint>

namespace kassette::io {

/// zlib's crc32(crc, data, n); faster on CPUs with instructions for it.
std::uint32_t crc32(std::uint32_t crc, const std::byte* data, std::int64_t n);

}  // namespace kassette::io
