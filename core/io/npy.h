// core/io/npy.h - NumPy's array format, wherever it lies: in a file of its own, or in an npz.
#pragma once
#include <string>

#include "core/io/file.h"

namespace kassette::io {

/// How much of the file a reader has to have seen to know the length of the header: magic, version, length.
inline constexpr std::int64_t kNpyPreamble = 12;
/// The longest header that is read: version 1 has no longer one, and NumPy itself stops at 10,000 bytes.
inline constexpr std::int64_t kNpyLongest = 12 + 65535;

struct NpyHeader {
  TensorSpec spec;
  bool fortran_order = false, swapped = false;
  int stored_unsigned = 0;  // 4 or 8: the bytes of a uint32 or uint64 in the file, which becomes an int64
  std::int64_t data = 0;    // where the elements begin, from the start of the magic
  std::int64_t bytes = 0;   // that they take in the file
  /// Elements lie as tensors have them.
  bool plain() const { return !fortran_order && !swapped && !stored_unsigned && !spec.dtype.is_bool(); }
};

/// The length of preamble and header from the first kNpyPreamble bytes. `where` names the array in errors: "" or "'w': ".
std::int64_t npy_header_end(const InputFile& file, const char* where, const std::string& preamble);
/// The header in its npy_header_end() bytes. `available`: how many bytes of elements can be there at most.
NpyHeader npy_header(const InputFile& file, const char* where, const std::string& bytes, std::int64_t available);

/// What is in the last h.bytes of `raw` as it lies in the file, in a tensor's order.
Tensor npy_ordered(const InputFile& file, const char* where, const NpyHeader& h, Fresh raw);

/// A fresh tensor of the elements: read(to, n) puts the next n bytes of the file at `to`.
template <class F>
Tensor npy_elements(const InputFile& file, const char* where, const NpyHeader& h, F&& read) {
  Fresh raw = fresh(file, h.spec);
  read(raw.data + (h.spec.bytes() - h.bytes), h.bytes);
  return npy_ordered(file, where, h, raw);
}

/// Magic, version and header, padded so that the elements begin at a multiple of 64.
std::string npy_header_text(const TensorSpec& spec, bool fortran_order, bool big_endian);

}  // namespace kassette::io
