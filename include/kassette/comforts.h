// include/kassette/comforts.h - the name of <kassette/inspect.h> before 0.2.0.
#ifndef KASSETTE_COMFORTS_H
#define KASSETTE_COMFORTS_H
#pragma message("<kassette/comforts.h> is now <kassette/inspect.h>; the old name goes with 0.3.0")
#include <kassette/inspect.h>

#endif  // KASSETTE_COMFORTS_H
