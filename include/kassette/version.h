// include/kassette/version.h - the version of the library that is running.
#ifndef KASSETTE_VERSION_H
#define KASSETTE_VERSION_H

#include <kassette/export.h>

namespace kassette {

/// The version of libkassette.so that is loaded: "MAJOR.MINOR.PATCH".
KASSETTE_API const char* version();

}  // namespace kassette

#endif  // KASSETTE_VERSION_H
