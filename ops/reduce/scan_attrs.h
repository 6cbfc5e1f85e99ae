// ops/reduce/scan_attrs.h - the attributes of scans: see Note [Scans], ops/reduce/scan.cpp.
#pragma once
#include "ops/engine/axes.h"

namespace kassette::ops {

/// Attributes of cumsum, cumprod, recurrence and shift.
struct ScanAttrs {
  static constexpr const char* attrs_name = "scan";
  AxisSet axes;
  bool reverse, shifted;
};

}  // namespace kassette::ops
