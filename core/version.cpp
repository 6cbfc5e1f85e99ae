// core/version.cpp - the version, as CMakeLists.txt states it.
#include <kassette/version.h>

namespace kassette {

const char* version() { return KASSETTE_VERSION; }

}  // namespace kassette
