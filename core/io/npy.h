// core/io/npy.h - NumPy's array format, wherever it lies: in a file of its own, or in an npz.
#pragma once
#include <string>

#include "core/io/file.h"

namespace kassette::io {

/// How much of the file a reader has to have seen to know the length of the header: magic, version, length.
inline constexpr std::int64_t kNpyPreamble = 12;

struct NpyHeader {
  Spec spec;
  bool fortran_order = false, swapped = false;
  std::int64_t data = 0;   // where the elements begin, from the start of the magic
  /// Elements lie as tensors have them.
  bool plain() const { return !fortran_order && !swapped && !spec.dtype.is_bool(); }
};

/// The length of preamble and header from the first kNpyPreamble bytes. `where` names the array in errors: "" or "'w': ".
std::int64_t npy_header_end(const InputFile& file, const char* where, const std::string& preamble);
/// The header in its npy_header_end() bytes. `available`: how many bytes of elements can be there at most.
NpyHeader npy_header(const InputFile& file, const char* where, const std::string& bytes, std::int64_t available);

/// Puts what was read in as it lies in the file into a tensor's order.
Tensor npy_ordered(const NpyHeader& header, Fresh raw);

/// Magic, version and header, padded so that the elements begin at a multiple of 64.
std::string npy_header_text(const Spec& spec, bool fortran_order, bool big_endian);

}  // namespace kassette::io
