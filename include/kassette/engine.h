// include/kassette/engine.h - the name of <kassette/external_backend.h> before 0.2.0.
#ifndef KASSETTE_CORE_ENGINE_H
#define KASSETTE_CORE_ENGINE_H
#pragma message("<kassette/engine.h> is now <kassette/external_backend.h>; the old name goes with 0.3.0")
#include <kassette/external_backend.h>

namespace kassette {
namespace engine = external;
}  // namespace kassette

#endif  // KASSETTE_CORE_ENGINE_H
