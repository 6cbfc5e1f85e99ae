// core/io/npy.h - NumPy's array format, in a .npy file or in an entry of an .npz.
#pragma once
#include <string>

#include "core/io/file.h"

namespace kassette::io {

/// The number of bytes that tell the length of the header: magic, version, length.
inline constexpr std::int64_t kNpyPreamble = 12;
/// The longest header that is accepted: the limit of version 1. NumPy itself stops at 10,000 bytes.
inline constexpr std::int64_t kNpyLongest = 12 + 65535;

/// A parsed header.
struct NpyHeader {
  TensorSpec spec;
  bool fortran_order = false, swapped = false;
  std::int64_t data = 0;   // offset of the elements from the start of the magic
  std::int64_t bytes = 0;  // size of the elements
  /// Whether a tensor can use the bytes of the file without conversion.
  bool plain() const { return !fortran_order && !swapped && !spec.dtype.is_bool(); }
};

/// The length of preamble and header, from the first kNpyPreamble bytes. `where` names the array in errors; it is empty
/// or "'w': ".
std::int64_t npy_header_end(const InputFile& file, const char* where, const std::string& preamble);
/// Parses a header of npy_header_end() bytes. `available`: the most bytes of elements that can follow.
NpyHeader npy_header(const InputFile& file, const char* where, const std::string& bytes, std::int64_t available);

/// Converts the elements of `raw` from the file's layout to a tensor's.
Tensor npy_ordered(const NpyHeader& h, NewTensor raw);

/// Reads the elements into a new tensor: read(to, n) writes the next n bytes of the file to `to`.
template <class F>
Tensor npy_elements(const InputFile& file, const NpyHeader& h, F&& read) {
  NewTensor raw = new_tensor(file, h.spec);
  read(raw.data, h.bytes);
  return npy_ordered(h, raw);
}

/// Magic, version and header, padded so that the elements begin at a multiple of 64.
std::string npy_header_text(const TensorSpec& spec, bool fortran_order, bool big_endian);

}  // namespace kassette::io
