// include/kassette/io.h - arrays in files: npy, npz, safetensors, CSV, IDX and PNG. Opt-in: <kassette/io.h>.
//
// A file gets its name only when it is written completely, so that a crash leaves the old file or the new one. Readers
// validate their input: for a truncated or corrupt file they throw a ValueError that names it, before they allocate
// memory for the sizes that it claims.
#ifndef KASSETTE_IO_H
#define KASSETTE_IO_H
#include <initializer_list>
#include <iosfwd>
#include <utility>

#include <kassette/api.h>
#include <kassette/none.h>

namespace kassette {

/// A tensor and its name in a file.
struct NamedTensor {
  const char* name;
  Tensor tensor;
};

/// Named tensors, in the order in which they were given, and named texts (safetensors' metadata). An object of zero
/// bytes is the empty list; copies are deep.
///
///     NamedTensors model = load_safetensors("model.safetensors");
///     Tensor w = model["dense/kernel"];
///     for (const auto& [name, x] : model) std::cout << name << ' ' << x.shape() << '\n';
class KASSETTE_API NamedTensors {
 public:
  struct Item {
    Name name;
    Tensor tensor;
  };
  NamedTensors() noexcept : impl_(nullptr) {}
  NamedTensors(NoneType) noexcept : impl_(nullptr) {}
  /// {{"w", w}, {"b", b}}. Throws ValueError for a name given twice.
  NamedTensors(std::initializer_list<Item> items);
  /// Names the tensors "arr_0", "arr_1", ..., as numpy.savez does if it is given no names.
  NamedTensors(const Tensors& list);
  NamedTensors(const NamedTensors& other);
  NamedTensors(NamedTensors&& other) noexcept : impl_(other.impl_) { other.impl_ = nullptr; }
  NamedTensors& operator=(NamedTensors other) noexcept {
    Impl* impl = impl_;
    impl_ = other.impl_;
    other.impl_ = impl;
    return *this;
  }
  ~NamedTensors();

  std::int64_t size() const;
  bool empty() const { return size() == 0; }
  bool contains(Name name) const;
  /// Throws ValueError, listing the available names, if there is no tensor of that name.
  const Tensor& operator[](Name name) const&;
  Tensor operator[](Name name) &&;
  /// Adds a tensor, or replaces the one of that name.
  void set(Name name, const Tensor& tensor);
  const NamedTensor* begin() const&;
  const NamedTensor* end() const&;
  const NamedTensor* begin() const&& = delete;  // two calls of load_npz() give two lists
  const NamedTensor* end() const&& = delete;
  /// The tensors alone, in order: K::batch_set_value(ws, named.tensors()).
  Tensors tensors() const;

  /// The text of that name, or null if there is none.
  const char* metadata(Name key) const&;
  const char* metadata(Name) const&& KASSETTE_UNAVAILABLE(
      "the text would end with this temporary: name the list first");
  void set_metadata(Name key, Name text);
  /// The number of texts; metadata_key(i) is the name of the i-th.
  std::int64_t metadata_size() const;
  const char* metadata_key(std::int64_t i) const&;
  const char* metadata_key(std::int64_t) const&& KASSETTE_UNAVAILABLE("the text would end with this temporary");
  friend KASSETTE_API std::ostream& operator<<(std::ostream& os, const NamedTensors& list);

 private:
  struct Impl;
  Impl& make();
  Impl* impl_;
  friend struct Access;
};

/// Names of the wanted arrays of a file, borrowed for a call: {"w", "b"}, or a vector of strings.
class KASSETTE_API Names {
 public:
  Names(std::initializer_list<Name> names)
      : list_(names.begin()), size_(static_cast<std::int64_t>(names.size())), at_(nullptr) {}
  template <class List, class = decltype(std::declval<const List&>()[0].c_str())>
  Names(const List& list)
      : list_(&list), size_(static_cast<std::int64_t>(list.size())), at_([](const void* l, std::int64_t i) {
          return Name((*static_cast<const List*>(l))[static_cast<decltype(list.size())>(i)]);
        }) {}
  std::int64_t size() const { return size_; }
  Name operator[](std::int64_t i) const { return at_ ? at_(list_, i) : static_cast<const Name*>(list_)[i]; }

 private:
  const void* list_;
  std::int64_t size_;
  Name (*at_)(const void*, std::int64_t);
};

/// How to load npy, npz and safetensors files.
struct LoadOptions {
  Named only_by_name{0};
  /// The elements stay in the file and are read into memory when they are accessed. The file may be replaced meanwhile
  /// (as the save functions do) but not changed in place. Arrays that cannot be used in place (compressed, in the other
  /// byte or memory order, not aligned) are copied.
  bool mmap = false;
  /// The most bytes that the arrays may take in memory together; a reader may need as much again while it works. 0
  /// means 8 times the size of the file, and at least 1 GiB. Mapped arrays do not count.
  std::int64_t max_bytes = 0;
};

/// Reads one array in NumPy's format (versions 1 to 3). A 2-byte void, which is how NumPy stores ml_dtypes' bfloat16,
/// becomes bfloat16. Throws ValueError if the file is not in this format, or if tensors do not support its dtype
/// (complex, text, structures, objects).
KASSETTE_API Tensor load_npy(Name path, const LoadOptions& options = {});

/// How save_npy lays out the elements.
struct NpyOptions {
  Named only_by_name{0};
  bool fortran_order = false;  // the first index varies fastest in the file
  bool big_endian = false;     // not for bfloat16, which NumPy reads as two bytes without an order
};
/// Writes one array in NumPy's format.
KASSETTE_API void save_npy(Name path, const Tensor& x, const NpyOptions& options = {});

/// Reads named arrays from a zip file of npy files, stored or deflated. Other files in it are ignored; a zip file that
/// has nothing but others is refused with a ValueError.
KASSETTE_API NamedTensors load_npz(Name path, const LoadOptions& options = {});
/// Reads only the arrays with these names, in the order of the file; all others may have any dtype. Throws ValueError,
/// listing the available names, if one is missing.
template <int = 0>  // a template, so that {} is options
KASSETTE_API NamedTensors load_npz(Name path, const Names& names, const LoadOptions& options = {});

/// How save_npz stores the entries.
struct NpzOptions {
  Named only_by_name{0};
  bool compress = false;  // as numpy.savez_compressed
};
/// Writes named arrays, like numpy.savez.
KASSETTE_API void save_npz(Name path, const NamedTensors& arrays, const NpzOptions& options = {});

/// Reads the format of huggingface/safetensors: names, dtypes, shapes and texts in JSON, then the elements.
KASSETTE_API NamedTensors load_safetensors(Name path, const LoadOptions& options = {});
/// Reads only the arrays with these names, as load_npz does, and all texts.
template <int = 0>
KASSETTE_API NamedTensors load_safetensors(Name path, const Names& names, const LoadOptions& options = {});
KASSETTE_API void save_safetensors(Name path, const NamedTensors& tensors);

/// A list of texts, copied: {"NA", "null"}, or a container of strings. Default: none is given.
class KASSETTE_API Texts {
 public:
  Texts(NoneType = None) noexcept : impl_(nullptr) {}
  Texts(std::initializer_list<Name> list) : Texts(Names(list)) {}
  template <class List, class = decltype(std::declval<const List&>()[0].c_str())>
  Texts(const List& list) : Texts(Names(list)) {}
  Texts(const Names& list);
  Texts(const Texts& other);
  Texts(Texts&& other) noexcept : impl_(other.impl_) { other.impl_ = nullptr; }
  Texts& operator=(Texts other) noexcept {
    Impl* impl = impl_;
    impl_ = other.impl_;
    other.impl_ = impl;
    return *this;
  }
  ~Texts();
  bool given() const { return impl_ != nullptr; }
  std::int64_t size() const;
  /// Throws ValueError if i is out of range.
  const char* operator[](std::int64_t i) const;
  void push_back(Name text);

 private:
  struct Impl;
  Impl* impl_;
};

/// Columns of a table: numbers from 0 on, where negative ones count from the last, or names: {0, -1} or {"age",
/// "fare"}, or a container of either. Default: all columns.
class KASSETTE_API Columns {
 public:
  Columns(NoneType = None) noexcept {}
  Columns(std::initializer_list<std::int64_t> numbers);
  Columns(std::initializer_list<Name> names) : list_(names) {}
  template <class List, class = decltype(std::declval<const List&>()[0].c_str()), class = void>
  Columns(const List& names) : list_(names) {}
  template <class List, class = decltype(std::declval<const List&>().size(), *std::declval<const List&>().data() + 0)>
  Columns(const List& numbers) : Columns(std::initializer_list<std::int64_t>{}) {
    for (auto n : numbers) push_back(static_cast<std::int64_t>(n));
  }
  bool given() const { return list_.given(); }
  /// Whether they are numbers, which texts() has as decimal digits.
  bool are_numbers() const { return numbers_; }
  const Texts& texts() const { return list_; }

 private:
  void push_back(std::int64_t number);
  Texts list_;
  bool numbers_ = false;
};

/// The layout that load_csv expects.
struct LoadCsvOptions {
  Named only_by_name{0};
  DType dtype = float64;
  char delimiter = ',';        // ' ' stands for any number of blanks and tabs
  std::int64_t skip_rows = 0;  // lines to skip at the beginning; the last of them may have the columns' names
  Columns columns = None;      // in this order; names without skip_rows are those of the first line
  Texts missing = None;    // fields that are NaN, beside empty ones; default: pandas' list, "NA", "null", "#N/A", ...
  char comment = '#';      // begins a comment, outside of quotes and words such as #N/A; '\0': nothing does
  bool skip_text = false;  // leaves out columns where a field is neither a number nor missing; the log names them
  std::int64_t max_bytes = 0;  // as in LoadOptions
};
/// Reads the numbers of a table, (rows, columns), one row per line; empty lines and comments are ignored. Fields may be
/// quoted as RFC 4180 has it. A missing field is NaN; with an integer dtype it is an error. The decimal point is '.' in
/// every locale. Throws ValueError, naming line and column.
KASSETTE_API Tensor load_csv(Name path, const LoadCsvOptions& options = {});

/// The layout that save_csv writes.
struct SaveCsvOptions {
  Named only_by_name{0};
  Name header = None;  // a first line: the columns' names
  char delimiter = ',';
};
/// Writes a matrix, or a vector as one column; each number has as many digits as are needed to read it back exactly.
KASSETTE_API void save_csv(Name path, const Tensor& x, const SaveCsvOptions& options = {});

/// The limit for load_idx and load_png.
struct LoadLimits {
  Named only_by_name{0};
  std::int64_t max_bytes = 0;  // as in LoadOptions
};
/// Reads the format of the MNIST files, compressed by gzip or not; save_idx writes it uncompressed, for uint8, int8,
/// int16, int32 and floats.
KASSETTE_API Tensor load_idx(Name path, const LoadLimits& limits = {});
KASSETTE_API void save_idx(Name path, const Tensor& x);

/// Reads a picture, (height, width, channels), as uint8, or as uint16 if it has 16 bits: grey (1 channel), grey and
/// alpha (2), RGB (3), RGBA (4). Palettes are looked up, and samples of less than 8 bits scaled to 8; colours are not
/// converted.
KASSETTE_API Tensor load_png(Name path, const LoadLimits& limits = {});
/// Writes a picture, (height, width) or (height, width, 1 to 4): uint8 and uint16 unchanged, floats and bool with 0 as
/// black and 1 as white (clipped; NaN is black).
KASSETTE_API void save_png(Name path, const Tensor& x);

}  // namespace kassette

#endif  // KASSETTE_IO_H
