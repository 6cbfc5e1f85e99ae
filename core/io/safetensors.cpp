// core/io/safetensors.cpp - the format of huggingface/safetensors: a length, a header in JSON, the elements.
#include <kassette/io.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <unordered_set>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/io/file.h"
#include "core/io/name_filter.h"
#include "core/convert.h"
#include "core/rank.h"

namespace kassette {
namespace {

using io::InputFile;

constexpr std::int64_t kMaxHeader = 100'000'000;  // the bound of the format's own reader

/// A dtype as the format writes it: a kind and bits.
std::string name_of(DType dtype) {
  if (dtype.is_bool()) return "BOOL";
  const char* kind = dtype == bfloat16 ? "BF" : dtype.is_float() ? "F" : dtype.is_unsigned() ? "U" : "I";
  return kind + std::to_string(8 * dtype.size());
}

struct Entry {
  std::string name;
  TensorSpec spec;
  std::int64_t begin = -1, end = -1;
  bool has_shape = false, wanted = true;
  std::string foreign;  // a dtype that tensors do not support
};

/// Handles the events of the JSON parser and refuses headers of another form as they are parsed, so that a header needs
/// no more memory than its tensors.
class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  HeaderReader(const InputFile& file, io::NameFilter& filter) : file_(file), filter_(filter) {}
  std::vector<Entry> entries;
  std::vector<std::pair<std::string, std::string>> texts;

  bool start_object(std::size_t) override {
    if (in_ignored()) return ignore(+1);
    if (depth_ == 0 || (depth_ == 1 && !key_.empty_key)) {
      ++depth_;
      return true;
    }
    bad();
  }
  bool key(string_t& name) override {
    if (ignored_) return true;
    if (depth_ == 1) {
      if (name.find('\0') != name.npos) file_.refuse("a name with a zero byte in it");
      if (!seen_.insert(name).second) file_.refuse("two entries of the name '", name, "'");
      key_ = {name, false};
      in_texts_ = name == "__metadata__";
      if (!in_texts_) {
        entries.emplace_back();
        entries.back().name = name;
        entries.back().wanted = filter_.match(name);
      }
    } else {
      field_ = name;
    }
    return true;
  }
  bool end_object() override {
    if (ignored_) return ignore(-1);
    if (--depth_ == 1 && !in_texts_) {
      const Entry& e = entries.back();
      if ((!e.spec.dtype.given() && e.foreign.empty()) || !e.has_shape || e.end < 0)
        file_.refuse("'", e.name, "' lacks dtype, shape or data_offsets");
    }
    return true;
  }
  bool start_array(std::size_t) override {
    if (in_ignored()) return ignore(+1);
    if (depth_ != 2 || in_texts_ || in_array_ || (field_ != "shape" && field_ != "data_offsets")) bad();
    in_array_ = true;
    numbers_.clear();
    return true;
  }
  bool end_array() override {
    if (ignored_) return ignore(-1);
    in_array_ = false;
    Entry& e = entries.back();
    if (field_ == "shape") {
      if (e.has_shape) bad();
      e.has_shape = true;
      e.spec.rank = static_cast<std::int8_t>(numbers_.size());
      std::copy(numbers_.begin(), numbers_.end(), e.spec.dims);
    } else {
      if (numbers_.size() != 2 || e.end >= 0) bad();
      e.begin = numbers_[0];
      e.end = numbers_[1];
    }
    return true;
  }
  bool number_unsigned(number_unsigned_t v) override {
    if (in_ignored()) return true;
    if (!in_array_ || v > std::uint64_t(INT64_MAX)) bad();
    if (field_ == "shape" && !is_rank(static_cast<std::int64_t>(numbers_.size()) + 1))
      file_.refuse("'", key_.name, "' has more than ", kMaxRank, " dimensions");
    if (field_ != "shape" && numbers_.size() == 2) bad();
    numbers_.push_back(static_cast<std::int64_t>(v));
    return true;
  }
  bool string(string_t& s) override {
    if (in_ignored()) return true;
    if (depth_ != 2 || in_array_) bad();
    if (in_texts_) {
      texts.emplace_back(field_, s);
      return true;
    }
    Entry& e = entries.back();
    if (field_ != "dtype" || e.spec.dtype.given() || !e.foreign.empty()) bad();
    for (DType dtype : kAllDTypes)
      if (s == name_of(dtype)) e.spec.dtype = dtype;
    if (e.spec.dtype.given()) return true;
    if (e.wanted)
      file_.refuse("'", e.name, "' has elements of dtype ", s, ", which tensors do not support", kRemedy,
                   "give the names of the arrays to load");
    e.foreign = s.empty() ? "?" : s;
    return true;
  }
  bool null() override {
    return (depth_ == 1 && in_texts_) || in_ignored() || bad();  // no texts
  }
  bool boolean(bool) override { return in_ignored() || bad(); }
  bool number_integer(number_integer_t) override { return in_ignored() || bad(); }
  bool number_float(number_float_t, const string_t&) override { return in_ignored() || bad(); }
  bool binary(binary_t&) override { bad(); }
  bool parse_error(std::size_t at, const std::string&, const nlohmann::detail::exception&) override {
    file_.refuse("the header is not JSON: error at byte ", at);
  }

 private:
  /// Whether the value at hand is or belongs to a field of an entry that the format does not know, which its reader
  /// passes over.
  bool in_ignored() const {
    return ignored_ || (depth_ == 2 && !in_texts_ && !in_array_ && field_ != "dtype" && field_ != "shape" &&
                        field_ != "data_offsets");
  }
  bool ignore(int deeper) {
    ignored_ += deeper;
    if (ignored_ > kMaxDepth) file_.refuse("'", key_.name, "': fields in more than ", kMaxDepth, " brackets");
    return true;
  }
  [[noreturn]] bool bad() const {
    if (key_.empty_key) file_.refuse("the header does not describe tensors");
    file_.refuse("the header's entry '", key_.name, "' does not describe a tensor");
  }
  struct Key {
    std::string name;
    bool empty_key = true;
  };
  const InputFile& file_;
  io::NameFilter& filter_;
  Key key_;
  std::string field_;
  std::vector<std::int64_t> numbers_;
  std::unordered_set<std::string> seen_;
  static constexpr int kMaxDepth = 128;  // as in the format's own reader
  int depth_ = 0, ignored_ = 0;          // ignored_: how many brackets of an unknown field are open
  bool in_texts_ = false, in_array_ = false;
};

/// Checks that the entries cover the data without gaps and overlaps: a rule of the format, so that nothing can be
/// hidden in a file.
void check_places(const InputFile& file, const std::vector<Entry>& entries, std::int64_t available) {
  std::vector<std::size_t> order(entries.size());
  std::iota(order.begin(), order.end(), std::size_t(0));
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(entries[a].begin, entries[a].end) < std::pair(entries[b].begin, entries[b].end);
  });
  std::int64_t at = 0;
  for (std::size_t i : order) {
    const Entry& e = entries[i];
    if (e.begin != at || e.end < e.begin || e.end > available)
      file.refuse("'", e.name, "' lies at ", e.begin, " to ", e.end, kExpected, "it must lie from ", at, " to at most ",
                  available);
    at = e.end;
    if (!e.foreign.empty()) continue;  // a dtype whose size we do not know
    const std::int64_t bytes = io::claimed_bytes(file, e.spec);
    if (e.end - e.begin != bytes)
      file.refuse("'", e.name, "' has ", e.end - e.begin, " bytes, and ", e.spec.dtype, " ", e.spec, " takes ", bytes);
  }
  if (at != available) file.refuse(available - at, " bytes belong to no tensor");
}

// The header is assembled as text: destroying an nlohmann-json object allocates, and without memory ends the program.
std::string quoted(const char* what, const std::string& words) {
  try {
    return nlohmann::json(words).dump();
  } catch (const nlohmann::json::type_error&) {
    fail<ValueError>({what}, "a name or text is not UTF-8");
  }
}

}  // namespace

namespace {

NamedTensors load(Name path, const Names* names, const LoadOptions& options) {
  InputFile file("load_safetensors", path, options.max_bytes);
  io::NameFilter filter(names);
  if (file.size() < 8) file.refuse("not a safetensors file: ", file.size(), " bytes");
  std::int64_t length = io::load_le<std::int64_t>(file.read(0, 8).data());
  if (length < 2 || length > kMaxHeader || length > file.size() - 8)
    file.refuse("not a safetensors file, or one that is cut short: its header claims ",
                static_cast<std::uint64_t>(length), " bytes");
  std::string header = file.read(8, length);
  if (header.find('\0') != header.npos)  // the parser would take it for the end
    file.refuse("the header is not JSON: a NUL at byte ", header.find('\0'));
  if (header[0] != '{') file.refuse("not a safetensors file: its header does not begin with '{'");
  HeaderReader reader(file, filter);
  nlohmann::json::sax_parse(header, &reader);
  std::int64_t data = 8 + length;
  check_places(file, reader.entries, file.size() - data);
  filter.check(file);

  NamedTensors tensors;
  for (const auto& [key, value] : reader.texts) {
    if (key.find('\0') != key.npos || value.find('\0') != value.npos) file.refuse("metadata with a zero byte in it");
    tensors.set_metadata(key, value);
  }
  for (const Entry& e : reader.entries) {
    if (!e.wanted) continue;
    if (options.mmap && !e.spec.dtype.is_bool() && (data + e.begin) % e.spec.dtype.size() == 0) {
      tensors.set(e.name, file.mapped(e.spec, data + e.begin));
      continue;
    }
    io::NewTensor raw = io::new_tensor(file, e.spec);
    file.read(data + e.begin, raw.data, e.end - e.begin);
    if (e.spec.dtype.is_bool()) io::clean_bools(raw.data, e.spec.numel());
    tensors.set(e.name, raw.tensor);
  }
  return tensors;
}

}  // namespace

NamedTensors load_safetensors(Name path, const LoadOptions& options) { return load(path, nullptr, options); }
template <int>
NamedTensors load_safetensors(Name path, const Names& names, const LoadOptions& options) {
  return load(path, &names, options);
}
template NamedTensors load_safetensors<0>(Name, const Names&, const LoadOptions&);

void save_safetensors(Name path, const NamedTensors& tensors) {
  constexpr const char* what = "save_safetensors";
  std::vector<io::Source> sources;
  std::vector<std::size_t> order;
  for (const NamedTensor& t : tensors) {
    if (std::string(t.name) == "__metadata__")
      fail<ValueError>({what, "tensors"}, "holds '__metadata__', which names no tensor in this format");
    order.push_back(sources.size());
    sources.emplace_back(At{what, "tensors"}, t.tensor);
  }
  // Widest elements first, so that every tensor is aligned for its elements.
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return sources[a].spec().dtype.size() > sources[b].spec().dtype.size();
  });
  std::vector<std::int64_t> begin(sources.size());
  std::int64_t at = 0;
  for (std::size_t i : order) {
    begin[i] = at;
    at += sources[i].spec().bytes();
  }
  std::string json = "{";
  if (tensors.metadata_size() > 0) json += "\"__metadata__\":{";
  for (std::int64_t i = 0; i < tensors.metadata_size(); ++i) {
    const std::string key = tensors.metadata_key(i);
    json += text(i ? "," : "", quoted(what, key), ':', quoted(what, tensors.metadata(key)));
  }
  if (tensors.metadata_size() > 0) json += sources.empty() ? "}" : "},";
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const TensorSpec& spec = sources[i].spec();
    json += text(i ? "," : "", quoted(what, tensors.begin()[i].name), ":{\"dtype\":\"", name_of(spec.dtype),
                 "\",\"shape\":[");
    for (int d = 0; d < spec.rank; ++d) json += text(d ? "," : "", spec.dims[d]);
    json += text("],\"data_offsets\":[", begin[i], ',', begin[i] + spec.bytes(), "]}");
  }
  json += '}';
  json.resize((json.size() + 8 + 63) / 64 * 64 - 8, ' ');
  io::OutputFile file(what, path);
  std::int64_t length = static_cast<std::int64_t>(json.size());
  file.write(&length, 8);
  file.write(json);
  for (std::size_t i : order) file.write(sources[i].data(), sources[i].spec().bytes());
  file.commit();
}

}  // namespace kassette
