// include/kassette/show_config.h - what this library runs on, for people and bug reports.
#ifndef KASSETTE_SHOW_CONFIG_H
#define KASSETTE_SHOW_CONFIG_H

#include <iosfwd>

#include <kassette/export.h>

namespace kassette {

/// Writes version, CPU level, BLAS, threads and devices, one line each, and one line for each setting that makes this
/// process slower than the machine allows, such as an OPENBLAS_CORETYPE of another CPU.
KASSETTE_API void show_config(std::ostream& out);

}  // namespace kassette

#endif  // KASSETTE_SHOW_CONFIG_H
