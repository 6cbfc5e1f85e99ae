// core/io/name_filter.h - which arrays of a file a call of load asks for.
#pragma once
#include <kassette/io.h>

#include <map>
#include <string>

#include "core/io/file.h"

namespace kassette::io {

/// The arrays in a list of names, or all.
class NameFilter {
 public:
  /// Null stands for all arrays.
  explicit NameFilter(const Names* names) : all_(!names) {
    for (std::int64_t i = 0; names && i < names->size(); ++i) {
      if (!(*names)[i].given()) fail<ValueError>({"load"}, "None is not a name of an array");
      found_[string_of((*names)[i])] = false;
    }
  }
  /// To be called for each array of the file; returns whether it is wanted.
  bool match(const std::string& name) {
    if (all_) return true;
    if (there_.size() <= kShown)
      there_ += text(there_.empty() ? "" : ", ", there_.size() < kShown ? "'" + name + "'" : "...");
    auto at = found_.find(name);
    return at != found_.end() && (at->second = true);
  }
  /// Throws ValueError if a wanted array was not in the file.
  void check(const InputFile& file) const {
    for (const auto& [name, found] : found_)
      if (!found)
        file.refuse("no array is called '", name, "'", kExpected, "there are ", there_.empty() ? "none" : there_);
  }

 private:
  static constexpr std::size_t kShown = 160;
  bool all_;
  std::map<std::string, bool> found_;
  std::string there_;
};

}  // namespace kassette::io
