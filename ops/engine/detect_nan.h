// ops/engine/detect_nan.h - the search for the first NaN or infinity.
#pragma once
#include "ops/engine/op.h"

namespace kassette::ops {

/// What is searched for; the least of all scopes that are open.
void start_detecting(bool infinities);
void stop_detecting(bool infinities);
bool detecting_nan();

/// Throws RuntimeError if a result of the call has a NaN or an infinity. While this thread must not be stopped
/// (IgnoreInterruptsScope) the error is kept for throw_found().
void check_results(const OpCall& call, std::int32_t origin);
/// Throws the error that was kept, if there is one.
void throw_found();

}  // namespace kassette::ops
