// devices/cuda/architectures.h - whether a build has code for a device of a given compute capability.
#pragma once
#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>

namespace kassette::cuda {

/// Whether the architectures in `list`, as CMake writes them ("80-real,90-real,120-virtual"), run on compute capability
/// major.minor. Machine code ("real") runs on devices of the same major and the same or a higher minor version. PTX
/// ("virtual") is compiled for any later device. Without either word a build has both. Architectures with the suffix a
/// ("90a") run on that version only; with the suffix f on that and higher minor versions. Other words ("native") count
/// as true: the build was made for the machine that it runs on.
inline bool has_code_for(std::string_view list, int major, int minor) {
  while (!list.empty()) {
    const std::string_view one = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), one.size() + 1));
    const std::size_t digits = std::min(one.find_first_not_of("0123456789"), one.size());
    if (digits < 2) return true;
    const int built = std::atoi(std::string(one.substr(0, digits)).c_str()), at = built / 10, least = built % 10;
    const std::string_view kind = one.substr(digits);
    const bool family = !kind.empty() && kind[0] == 'f', exact = !kind.empty() && kind[0] != '-' && !family,
               is_virtual = kind.find("-virtual") != kind.npos, is_real = kind.find("-real") != kind.npos;
    if (exact ? at == major && least == minor : (family || !is_virtual) && at == major && least <= minor) return true;
    if (!exact && !family && !is_real && built <= 10 * major + minor) return true;
  }
  return false;
}

}  // namespace kassette::cuda
