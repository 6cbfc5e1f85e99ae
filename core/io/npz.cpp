// core/io/npz.cpp - several arrays under names: a zip file of npy files.
#include <kassette/io.h>

#include <algorithm>

#include "core/io/npy.h"
#include "core/io/name_filter.h"
#include "core/io/zip.h"

namespace kassette {
namespace {

constexpr std::string_view kSuffix = ".npy";

Tensor read_entry(const io::InputFile& file, const io::ZipEntry& entry, const char* where, bool mmap) {
  io::ZipReader in(file, entry);
  std::string head = in.read(std::min(entry.size, io::kNpyPreamble));
  std::int64_t end = io::npy_header_end(file, where, head);
  if (end > entry.size) file.refuse(where, "ends within its header");
  head += in.read(end - static_cast<std::int64_t>(head.size()));
  io::NpyHeader h = io::npy_header(file, where, head, entry.size - end);
  std::int64_t at = entry.data + h.data;
  if (mmap && !entry.deflated && h.plain() && at % h.spec.dtype.size() == 0) return file.mapped(h.spec, at);
  return io::npy_elements(file, where, h, [&](std::byte* to, std::int64_t n) {
    in.read(to, n);
    in.finish();
  });
}

/// Reads the arrays of the given names, or all.
NamedTensors load(Name path, const Names* names, const LoadOptions& options) {
  io::InputFile file("load_npz", path, options.max_bytes);
  io::NameFilter filter(names);
  NamedTensors arrays;
  for (const io::ZipEntry& entry : io::zip_entries(file)) {
    if (!std::string_view(entry.name).ends_with(kSuffix)) continue;
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
