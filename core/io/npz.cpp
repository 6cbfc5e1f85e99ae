// core/io/npz.cpp - several arrays under names: a zip file of npy files.
#include <kassette/io.h>

#include <algorithm>

#include "core/io/npy.h"
#include "core/io/name_filter.h"
#include "core/io/zip.h"

namespace kassette {
namespace {

constexpr std::string_view kSuffix = ".npy";

/// The header of an entry's array.
io::NpyHeader read_header(const io::InputFile& file, const io::ZipEntry& entry, const char* where, io::ZipReader& in) {
  std::string head = in.read(std::min(entry.size, io::kNpyPreamble));
  std::int64_t end = io::npy_header_end(file, where, head);
  if (end > entry.size) file.refuse(where, "ends within its header");
  head += in.read(end - static_cast<std::int64_t>(head.size()));
  return io::npy_header(file, where, head, entry.size - end);
}

Tensor read_entry(const io::InputFile& file, const io::ZipEntry& entry, const char* where, bool mmap) {
  io::ZipReader in(file, entry);
  io::NpyHeader h;
  try {
    h = read_header(file, entry, where, in);
  } catch (const ValueError&) {
    // A header of other bytes than were written says anything.
    if (in.damaged()) file.refuse(where, "is damaged: its checksum differs, or it cannot be decompressed");
    throw;
  }
  std::int64_t at = entry.data + h.data;
  if (mmap && !entry.deflated && h.plain() && at % h.spec.dtype.size() == 0) return file.mapped(h.spec, at);
  return io::npy_elements(file, h, [&](std::byte* to, std::int64_t n) {
    in.read(to, n);
    in.finish();
  });
}

/// Refuses a zip file of something else than arrays.
[[noreturn]] void refuse_others(const io::InputFile& file, const std::vector<io::ZipEntry>& entries) {
  const auto has = [&](std::string_view end) {
    return std::any_of(entries.begin(), entries.end(),
                       [&](const io::ZipEntry& e) { return std::string_view(e.name).ends_with(end); });
  };
  file.refuse("holds no arrays (no .npy), but '", entries[0].name, entries.size() > 1 ? "' and others" : "'", kRemedy,
              has("data.pkl")      ? "PyTorch wrote it: save it there as safetensors (safetensors.torch.save_file)"
              : has("config.json") ? "Keras wrote it: save its weights with numpy.savez"
                                   : "");
}

/// Reads the arrays of the given names, or all.
NamedTensors load(Name path, const Names* names, const LoadOptions& options) {
  io::InputFile file("load_npz", path, options.max_bytes);
  io::NameFilter filter(names);
  NamedTensors arrays;
  const std::vector<io::ZipEntry> entries = io::zip_entries(file);
  const auto is_array = [](const io::ZipEntry& e) { return std::string_view(e.name).ends_with(kSuffix); };
  if (!entries.empty() && std::none_of(entries.begin(), entries.end(), is_array)) refuse_others(file, entries);
  for (const io::ZipEntry& entry : entries) {
    if (!is_array(entry)) continue;
    std::string name = entry.name.substr(0, entry.name.size() - kSuffix.size());
    if (!filter.match(name)) continue;
    if (name.find('\0') != name.npos) file.refuse("a name with a zero byte in it");
    if (arrays.contains(name)) file.refuse("two arrays of the name '", name, "'");
    arrays.set(name, read_entry(file, entry, ("'" + name + "': ").c_str(), options.mmap));
  }
  filter.check(file);
  return arrays;
}

}  // namespace

NamedTensors load_npz(Name path, const LoadOptions& options) { return load(path, nullptr, options); }
template <int>
NamedTensors load_npz(Name path, const Names& names, const LoadOptions& options) {
  return load(path, &names, options);
}
template NamedTensors load_npz<0>(Name, const Names&, const LoadOptions&);

void save_npz(Name path, const NamedTensors& arrays, const NpzOptions& options) {
  io::OutputFile file("save_npz", path);
  io::ZipWriter zip(file);
  for (const NamedTensor& a : arrays) {
    if (std::string_view(a.name).size() > 65000)
      fail<ValueError>({"save_npz", "arrays"}, "has a name of ", std::string_view(a.name).size(), " bytes", kExpected,
                       "65000 is the most");
    io::Source source({"save_npz", "arrays"}, a.tensor);
    zip.add(std::string(a.name) + std::string(kSuffix),
            io::npy_header_text(source.spec(), /*fortran_order=*/false, /*big_endian=*/false), source.data(),
            source.spec().bytes(), options.compress);
  }
  zip.finish();
  file.commit();
}

}  // namespace kassette
