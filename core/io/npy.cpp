// core/io/npy.cpp - NumPy's array format (numpy/lib/format: versions 1.0, 2.0 and 3.0).
#include "core/io/npy.h"
#include "core/convert.h"
#include "core/rank.h"

#include <kassette/io.h>

#include <charconv>
#include <cstring>
#include <vector>

namespace kassette {
namespace io {
namespace {

constexpr char kMagic[] = "\x93NUMPY";

/// The header is a Python literal: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }. This reads the part of
/// the language that NumPy writes, in any order and spacing.
class Literal {
 public:
  Literal(const InputFile& file, const char* where, std::string_view text) : file_(file), where_(where), text_(text) {}

  bool take(char c) {
    space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) bad();
  }
  std::string_view quoted() {
    space();
    char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') bad();
    std::size_t end = text_.find(quote, at_ + 1);
    if (end == text_.npos) bad();
    auto s = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return s;
  }
  bool boolean() {
    space();
    for (bool v : {true, false}) {
      std::string_view word = v ? "True" : "False";
      if (text_.substr(at_, word.size()) != word) continue;
      at_ += word.size();
      return v;
    }
    bad();
  }
  std::int64_t integer() {
    space();
    std::int64_t v = 0;
    auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), v);
    if (error == std::errc::result_out_of_range) file_.refuse(where_, "a size of the header is out of range");
    if (error != std::errc()) bad();
    at_ = end - text_.data();
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // written by Python 2
    return v;
  }
  bool at_quote() {
    space();
    return at_ < text_.size() && (text_[at_] == '\'' || text_[at_] == '"');
  }
  void end() {
    space();
    if (at_ != text_.size()) bad();
  }
  [[noreturn]] void bad() { file_.refuse(where_, "the header does not describe an array: error at byte ", at_); }

 private:
  void space() {
    while (at_ < text_.size() && std::strchr(" \t\n\r", text_[at_]) && text_[at_]) ++at_;
  }
  const InputFile& file_;
  const char* where_;
  std::string_view text_;
  std::size_t at_ = 0;
};

/// A dtype as NumPy writes it, a kind and bytes, without the byte order: "i4". NumPy has no bfloat16: two bytes.
std::string descr_of(DType dtype) {
  const char kind = dtype.is_bool()       ? 'b'
                    : dtype == bfloat16   ? 'V'
                    : dtype.is_float()    ? 'f'
                    : dtype.is_unsigned() ? 'u'
                                          : 'i';
  return {kind, static_cast<char>('0' + dtype.size())};
}

/// Other spellings that numpy.dtype() takes, with what NumPy itself writes. "long" and "int" are those of Linux.
constexpr std::string_view kSpellings[][2] = {
    {"?", "b1"},       {"bool", "b1"},      {"bool_", "b1"},  {"b", "i1"},       {"int8", "i1"},   {"byte", "i1"},
    {"B", "u1"},       {"uint8", "u1"},     {"ubyte", "u1"},  {"h", "i2"},       {"int16", "i2"},  {"short", "i2"},
    {"H", "u2"},       {"uint16", "u2"},    {"ushort", "u2"}, {"i", "i4"},       {"int32", "i4"},  {"intc", "i4"},
    {"I", "u4"},       {"uint32", "u4"},    {"uintc", "u4"},  {"l", "i8"},       {"q", "i8"},      {"int64", "i8"},
    {"int", "i8"},     {"int_", "i8"},      {"long", "i8"},   {"intp", "i8"},    {"p", "i8"},      {"longlong", "i8"},
    {"L", "u8"},       {"Q", "u8"},         {"uint64", "u8"}, {"uint", "u8"},    {"ulong", "u8"},  {"uintp", "u8"},
    {"P", "u8"},       {"ulonglong", "u8"}, {"e", "f2"},      {"float16", "f2"}, {"half", "f2"},   {"f", "f4"},
    {"float32", "f4"}, {"single", "f4"},    {"d", "f8"},      {"float64", "f8"}, {"double", "f8"}, {"float", "f8"},
    {"bfloat16", "V2"}};

void set_dtype(const InputFile& file, const char* where, std::string_view descr, NpyHeader& h) {
  std::string_view kind = descr;
  const bool ordered = !descr.empty() && descr.find_first_of("<>|=") == 0;
  if (ordered) kind.remove_prefix(1);
  for (const auto& [spelling, plain] : kSpellings)
    if (kind == spelling && (!ordered || kind.size() == 1)) kind = plain;  // a byte order goes with letters alone
  for (DType dtype : kAllDTypes)
    if (kind == descr_of(dtype)) h.spec.dtype = dtype;
  h.swapped = ordered && descr[0] == '>';
  if (!h.spec.dtype.given())
    file.refuse(where, "elements of dtype '", descr, "', which tensors do not support", kRemedy,
                "convert them in NumPy (x.astype)", *where ? ", or give the names of the arrays to load" : "");
  if (h.spec.dtype.size() == 1) h.swapped = false;
}

void set_shape(const InputFile& file, const char* where, Literal& in, TensorSpec& spec) {
  in.expect('(');
  int rank = 0;
  bool comma = true;
  for (; !in.take(')'); ++rank) {
    if (!comma) in.bad();
    std::int64_t n = in.integer();
    if (n < 0) file.refuse(where, "a negative size, ", n);
    if (!is_rank(rank + 1)) file.refuse(where, "an array of more than ", kMaxRank, " dimensions");
    spec.dims[rank] = n;
    comma = in.take(',');
  }
  // In Python (6) is a number; the tuple is (6,).
  if (rank == 1 && !comma) file.refuse(where, "the shape (", spec.dims[0], ")", kExpected, "it must be a tuple");
  spec.rank = static_cast<std::int8_t>(rank);
}

}  // namespace

std::int64_t npy_header_end(const InputFile& file, const char* where, const std::string& preamble) {
  if (preamble.size() < 10 || std::memcmp(preamble.data(), kMagic, 6) != 0) file.refuse(where, "not an npy file");
  int major = static_cast<unsigned char>(preamble[6]);
  if (major < 1 || major > 3)
    file.refuse(where, "version ", major, " of the npy format", kExpected, "1 to 3 are known");
  if (major > 1 && preamble.size() < 12) file.refuse(where, "not an npy file");
  std::int64_t end = major == 1 ? 10 + load_le<std::uint16_t>(preamble.data() + 8)
                                : 12 + static_cast<std::int64_t>(load_le<std::uint32_t>(preamble.data() + 8));
  // No valid header is that short; readers rely on it to extend to the end of the preamble.
  if (end < kNpyPreamble) file.refuse(where, "not an npy file");
  if (end > kNpyLongest)
    file.refuse(where, "a header of ", end, " bytes", kExpected, "at most ", kNpyLongest, " are read");
  return end;
}

NpyHeader npy_header(const InputFile& file, const char* where, const std::string& bytes, std::int64_t available) {
  NpyHeader h;
  h.data = static_cast<std::int64_t>(bytes.size());
  std::size_t start = bytes[6] == 1 ? 10 : 12;
  Literal in(file, where, std::string_view(bytes).substr(start));
  bool has_descr = false, has_order = false, has_shape = false;
  in.expect('{');
  while (!in.take('}')) {
    std::string_view key = in.quoted();
    in.expect(':');
    if (key == "descr" && !has_descr) {
      has_descr = true;
      if (!in.at_quote()) file.refuse(where, "an array of structures", kExpected, "tensors have none");
      set_dtype(file, where, in.quoted(), h);
    } else if (key == "fortran_order" && !has_order) {
      has_order = true;
      h.fortran_order = in.boolean();
    } else if (key == "shape" && !has_shape) {
      has_shape = true;
      set_shape(file, where, in, h.spec);
    } else {
      in.bad();
    }
    if (in.take(',')) continue;
    in.expect('}');
    break;
  }
  in.end();
  if (!has_descr || !has_order || !has_shape) file.refuse(where, "the header lacks descr, fortran_order or shape");
  if (h.spec.rank < 2) h.fortran_order = false;
  h.bytes = claimed_bytes(file, h.spec);
  if (h.bytes > available)
    file.refuse(where, h.spec.dtype, " ", h.spec, " takes ", h.bytes, " bytes, and the file has ", available,
                " for it");
  return h;
}

namespace {

/// Converts elements from Fortran order to row-major order. It iterates over the result, so that writes are sequential.
template <class T>
void from_fortran(const TensorSpec& spec, const T* from, T* to) {
  std::int64_t stride[kMaxRank], index[kMaxRank] = {}, n = 1;
  for (int i = 0; i < spec.rank; ++i) {
    stride[i] = n;
    n *= spec.dims[i];
  }
  int last = spec.rank - 1;
  const T* at = from;
  for (std::int64_t done = 0; done < n;) {
    for (std::int64_t i = 0; i < spec.dims[last]; ++i) to[done++] = at[i * stride[last]];
    for (int d = last - 1; d >= 0; --d) {
      at += stride[d];
      if (++index[d] < spec.dims[d]) break;
      at -= stride[d] * spec.dims[d];
      index[d] = 0;
    }
  }
}

template <class F>
void by_size(int size, F&& f) {
  if (size == 1) f(static_cast<std::uint8_t*>(nullptr));
  else if (size == 2) f(static_cast<std::uint16_t*>(nullptr));
  else if (size == 4) f(static_cast<std::uint32_t*>(nullptr));
  else f(static_cast<std::uint64_t*>(nullptr));
}

}  // namespace

Tensor npy_ordered(const NpyHeader& h, NewTensor raw) {
  std::int64_t n = h.spec.numel();
  if (h.swapped) swap_bytes(raw.data, n, h.spec.dtype.size());
  if (h.spec.dtype.is_bool()) clean_bools(raw.data, n);
  if (!h.fortran_order || n == 0) return raw.tensor;
  NewTensor ordered = new_tensor(h.spec);  // a second copy, which max_bytes allows for
  by_size(h.spec.dtype.size(), [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    from_fortran(h.spec, reinterpret_cast<const T*>(raw.data), reinterpret_cast<T*>(ordered.data));
  });
  return ordered.tensor;
}

std::string npy_header_text(const TensorSpec& spec, bool fortran_order, bool big_endian) {
  char order = spec.dtype.size() == 1 ? '|' : big_endian ? '>' : '<';
  std::string dict = text("{'descr': '", order, descr_of(spec.dtype),
                          "', 'fortran_order': ", fortran_order ? "True" : "False", ", 'shape': (");
  for (int i = 0; i < spec.rank; ++i) dict += text(i ? ", " : "", spec.dims[i]);
  dict += spec.rank == 1 ? ",), }" : "), }";
  std::size_t length = (10 + dict.size() + 1 + 63) / 64 * 64 - 10;
  dict.resize(length - 1, ' ');
  std::string head = std::string(kMagic, 6) + '\x01' + '\0';
  head += static_cast<char>(length & 255);
  head += static_cast<char>(length >> 8);
  return head + dict + '\n';
}

}  // namespace io

Tensor load_npy(Name path, const LoadOptions& options) {
  io::InputFile file("load_npy", path, options.max_bytes);
  std::string preamble = file.read(0, std::min(file.size(), io::kNpyPreamble));
  std::int64_t end = io::npy_header_end(file, "", preamble);
  if (end > file.size()) file.refuse("ends within its header: ", file.size(), " bytes of ", end);
  io::NpyHeader h = io::npy_header(file, "", file.read(0, end), file.size() - end);
  if (options.mmap && h.plain() && h.data % h.spec.dtype.size() == 0) return file.mapped(h.spec, h.data);
  return io::npy_elements(file, h, [&](std::byte* to, std::int64_t n) { file.read(h.data, to, n); });
}

void save_npy(Name path, const Tensor& x, const NpyOptions& options) {
  io::Source source({"save_npy", "x"}, x);
  io::OutputFile file("save_npy", path);
  const TensorSpec& spec = source.spec();
  bool fortran = options.fortran_order && spec.rank > 1, big = options.big_endian && spec.dtype.size() > 1;
  if (spec.dtype == bfloat16) big = false;  // to NumPy it is a void, which has no byte order: it would be lost
  file.write(io::npy_header_text(spec, fortran, big));
  if (!fortran && !big) {
    file.write(source.data(), spec.bytes());
  } else {
    // Writing in Fortran order is the same transposition as reading the reversed shape from Fortran order.
    std::vector<std::byte> copy(source.data(), source.data() + spec.bytes());
    if (fortran && spec.numel()) {
      TensorSpec reversed = spec;
      for (int i = 0; i < spec.rank; ++i) reversed.dims[i] = spec.dims[spec.rank - 1 - i];
      io::by_size(spec.dtype.size(), [&](auto* null) {
        using T = std::remove_pointer_t<decltype(null)>;
        io::from_fortran(reversed, reinterpret_cast<const T*>(source.data()), reinterpret_cast<T*>(copy.data()));
      });
    }
    if (big) io::swap_bytes(copy.data(), spec.numel(), spec.dtype.size());
    file.write(copy.data(), spec.bytes());
  }
  file.commit();
}

}  // namespace kassette
