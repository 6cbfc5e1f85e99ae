// nn_backend/engines.h - finding the backend that the configuration names.
#pragma once
#include <string>

#include "ops/dispatch.h"

namespace kassette {
namespace backend {

/// The backend of that name: null for those that are our own engine (tensorflow, kassette, theano, cntk). Throws ValueError
/// where there is none, it does not load, or it lacks placeholder, variable or function. `source` is what named it.
const ExternalBackend* load_backend(const std::string& name, const std::string& source);

}  // namespace backend
}  // namespace kassette
