// devices/cpu/openblas_core.h - the CPU whose kernels OpenBLAS runs.
#pragma once
#include <string>

#include "devices/cpu/level.h"

namespace kassette::devices {

/// The name of the CPU ("core") whose kernels OpenBLAS runs.
std::string openblas_core();
/// The CPU level whose instructions the kernels of a core use; the highest for a name that is not known, as those to
/// come are of newer CPUs.
Level level_of_core(const std::string& core);

}  // namespace kassette::devices
