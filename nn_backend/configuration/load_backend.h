// nn_backend/configuration/load_backend.h - loading the backend that the configuration names.
#pragma once
#include <string>

#include "ops/engine/dispatch.h"

namespace kassette::backend::detail {

/// The backend of that name. Returns null for the names of the built-in backend (tensorflow, kassette, kassette.keras,
/// theano, cntk). Throws ValueError if there is none, it does not load, or it lacks placeholder, variable or function.
/// `source`: the file or variable with the name, for messages.
const ops::ExternalBackend* load_backend(const std::string& name, const std::string& source);

}  // namespace kassette::backend::detail
