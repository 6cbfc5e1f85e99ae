// tests/fuzz/readers.h - the readers of files, and the checks that must hold for any file. For the fuzzer
// (tests/fuzz/reader.cpp) and for the test of files that it found (tests/io/corpus_test.cpp).
#pragma once
#include <kassette/error.h>
#include <kassette/io.h>
#include <kassette/runtime.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include "nn_backend/configuration/settings.h"

namespace kassette::test {

/// Reads every element, as a user would. Returns what is wrong with the values, or "".
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

/// The limit of memory for every reader: twice max_bytes, or the size to which a file of this size can be unpacked and
/// expanded (one bit of a palette image becomes four bytes), plus some for small blocks.
inline constexpr std::int64_t kMaxBytes = 32 << 20;
inline std::int64_t memory_allowed(std::size_t size) {
  return std::min(static_cast<std::int64_t>(size) * 1032 * 32, 2 * kMaxBytes) + (4 << 20);
}

struct Reader {
  const char* name;
  /// The name of the format and of its corpus.
  const char* format;
  std::string (*load)(const std::string& path);
};
inline const Reader kReaders[] = {
    {"npy", "npy", [](const std::string& path) { return touch(load_npy(path, {.max_bytes = kMaxBytes})); }},
    {"npy_mapped", "npy",
     [](const std::string& path) { return touch(load_npy(path, {.mmap = true, .max_bytes = kMaxBytes})); }},
    {"npz", "npz", [](const std::string& path) { return touch(load_npz(path, {.max_bytes = kMaxBytes})); }},
    {"npz_mapped", "npz",
     [](const std::string& path) { return touch(load_npz(path, {.mmap = true, .max_bytes = kMaxBytes})); }},
    {"safetensors", "safetensors",
     [](const std::string& path) { return touch(load_safetensors(path, {.max_bytes = kMaxBytes})); }},
    {"safetensors_mapped", "safetensors",
     [](const std::string& path) { return touch(load_safetensors(path, {.mmap = true, .max_bytes = kMaxBytes})); }},
    {"npz_named", "npz",
     [](const std::string& path) {
       return touch(load_npz(path, {"w", "a", "arr_0"}, {.max_bytes = kMaxBytes}));
     }},
    {"safetensors_named", "safetensors",
     [](const std::string& path) {
       return touch(load_safetensors(path, {"w", "a", "b"}, {.max_bytes = kMaxBytes}));
     }},
    {"csv", "csv", [](const std::string& path) { return touch(load_csv(path, {.max_bytes = kMaxBytes})); }},
    {"csv_single", "csv",
     [](const std::string& path) { return touch(load_csv(path, {.dtype = float32, .max_bytes = kMaxBytes})); }},
    {"csv_int", "csv",
     [](const std::string& path) {
       return touch(load_csv(path, {.dtype = int8, .skip_rows = 1, .max_bytes = kMaxBytes}));
     }},
    {"idx", "idx", [](const std::string& path) { return touch(load_idx(path, {.max_bytes = kMaxBytes})); }},
    {"png", "png", [](const std::string& path) { return touch(load_png(path, {.max_bytes = kMaxBytes})); }},
    {"keras_json", "json",
     [](const std::string& path) {
       std::ifstream in(path, std::ios::binary);
       const std::string text((std::istreambuf_iterator<char>(in)), {});
       backend::detail::Settings s;
       backend::detail::apply_settings(text, path, s);
       const bool wrong = !s.floatx.is_float() || s.backend.find_first_of("/\n") != s.backend.npos;
       return std::string(wrong ? "settings that the file cannot have" : "");
     }},
};

/// What a reader did wrong with a file of `size` bytes, or "". A file must be read, or refused by a ValueError of one
/// line; settings may also throw a TypeError or AssertionError.
inline std::string fault(const Reader& reader, const std::string& path, std::size_t size) {
  empty_cache();
  reset_peak_memory();
  std::string wrong;
  try {
    wrong = reader.load(path);
  } catch (const Error& e) {
    const bool right = dynamic_cast<const ValueError*>(&e) ||
                       (!std::strcmp(reader.format, "json") &&
                        (dynamic_cast<const TypeError*>(&e) || dynamic_cast<const AssertionError*>(&e)));
    if (!right) wrong = std::string("an error of the wrong type: ") + e.what();
    else if (std::strchr(e.what(), '\n')) wrong = std::string("a message of several lines: ") + e.what();
    else if (!std::strstr(e.what(), path.c_str()))
      wrong = std::string("a message that does not name the file: ") + e.what();
  }
  const std::int64_t peak = memory_stats().peak;
  if (wrong.empty() && peak > memory_allowed(size))
    wrong = std::to_string(size) + " bytes took " + std::to_string(peak);
  return wrong;
}

}  // namespace kassette::test
