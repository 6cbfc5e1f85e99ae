// tests/fuzz/readers.h - the readers of files, and what each must keep to whatever a file holds. For the fuzzer
// (tests/fuzz/reader.cpp) and for the test of what it found (tests/io/corpus_test.cpp).
#pragma once
#include <kassette/error.h>
#include <kassette/io.h>
#include <kassette/runtime.h>

#include <cstring>
#include <string>

namespace kassette::test {

/// Reads every byte, as a user would. What is wrong with the values, or "".
inline std::string touch(const Tensor& x) {
  auto* bytes = static_cast<const unsigned char*>(x.data(x.dtype()));
  volatile unsigned sum = 0;
  for (std::int64_t i = 0; i < x.size() * x.dtype().size(); ++i) {
    sum = sum + bytes[i];
    if (x.dtype().is_bool() && bytes[i] > 1) return "a bool that is neither true nor false";
  }
  return "";
}
inline std::string touch(const NamedTensors& list) {
  std::string wrong;
  for (const NamedTensor& t : list)
    if (wrong.empty()) wrong = touch(t.tensor);
  return wrong;
}

struct Reader {
  const char* name;
  /// The name of the format: that of the corpus.
  const char* format;
  std::string (*load)(const std::string& path);
};
inline const Reader kReaders[] = {
    {"npy", "npy", [](const std::string& path) { return touch(load_npy(path)); }},
    {"npy_mapped", "npy", [](const std::string& path) { return touch(load_npy(path, {.mmap = true})); }},
    {"npz", "npz", [](const std::string& path) { return touch(load_npz(path)); }},
    {"npz_mapped", "npz", [](const std::string& path) { return touch(load_npz(path, {.mmap = true})); }},
    {"safetensors", "safetensors", [](const std::string& path) { return touch(load_safetensors(path)); }},
    {"safetensors_mapped", "safetensors", [](const std::string& path) { return touch(load_safetensors(path, {.mmap = true})); }},
    {"csv", "csv", [](const std::string& path) { return touch(load_csv(path)); }},
    {"csv_int", "csv", [](const std::string& path) { return touch(load_csv(path, {.dtype = int8, .skip_rows = 1})); }},
    {"idx", "idx", [](const std::string& path) { return touch(load_idx(path)); }},
    {"png", "png", [](const std::string& path) { return touch(load_png(path)); }},
};

/// What no reader may exceed: what the bytes of a file can unpack to, and some for small blocks.
inline std::int64_t memory_allowed(std::size_t size) { return static_cast<std::int64_t>(size) * 1032 * 2 + (4 << 20); }

/// What a reader did wrong with a file of so many bytes, or "". A file is read, or refused by a ValueError of one line.
inline std::string fault(const Reader& reader, const std::string& path, std::size_t size) {
  empty_cache();
  reset_peak_memory();
  std::string wrong;
  try {
    wrong = reader.load(path);
  } catch (const ValueError& e) {
    if (std::strchr(e.what(), '\n')) wrong = std::string("a message of several lines: ") + e.what();
    else if (!std::strstr(e.what(), path.c_str())) wrong = std::string("a message that does not name the file: ") + e.what();
  }
  const std::int64_t peak = memory_stats().peak;
  if (wrong.empty() && peak > memory_allowed(size)) wrong = std::to_string(size) + " bytes took " + std::to_string(peak);
  return wrong;
}

}  // namespace kassette::test
