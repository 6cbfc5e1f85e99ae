// nn_backend/inspect/time_text.h - times in readable units.
#pragma once
#include <string>

namespace kassette::inspect {

/// "1.5 s", "230 us".
std::string time_text(double seconds);

}  // namespace kassette::inspect
