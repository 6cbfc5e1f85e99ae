// core/precompiled.h - what most sources of the library include, read once. Each includes what it needs all the same,
// and is compiled without this by the nightly run.
#pragma once
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#ifdef KASSETTE_LEVEL  // a *_simd.cpp
#include <xsimd/xsimd.hpp>
#else
#include "core/text.h"

#include <kassette/tensor.h>
#endif
