// ops/engine/error_attribution.cpp - which function an error names.
#include "ops/engine/error_attribution.h"

#include "core/text.h"
#include "ops/engine/origin.h"
#include "ops/engine/refusals.h"

namespace kassette::ops {

const char kNamesOrigin[] = "kassette";

namespace {

/// Inside a catch: rethrows, after edit(error) if it is an error of the present call.
template <class F>
[[noreturn]] void rethrow_edited(F&& edit) {
  try {
    throw;
  } catch (const AsyncError&) {
    throw;
  } catch (Error& e) {
    edit(e);
    throw;
  }
}

bool names_one(const Error& e) { return *e.function(); }
bool is_of_allocator(const Error& e) { return !names_one(e) && dynamic_cast<const MemoryError*>(&e); }

}  // namespace

void rethrow_attributed(const char* what, const std::string& item) {
  rethrow_edited([&](Error& e) {
    if (!names_one(e) && !is_of_allocator(e)) return;
    if (item.empty()) return ErrorAccess::set(e, what, e.argument(), e.given());
    ErrorAccess::set(e, what, item.c_str(), text(kIsRefused, e.argument(), *e.argument() ? " " : "", e.given()));
  });
}

void rethrow_for(const char* op) {
  rethrow_edited([op](Error& e) {
    if (is_of_allocator(e)) ErrorAccess::set(e, op, "", e.given());
  });
}

void rethrow_of_instruction(std::int32_t function, const char* op) {
  const char* name = function_name(function);
  if (!name) rethrow_for(op);
  rethrow_attributed(name);
}

void rethrow_in_step(std::int64_t t, std::int64_t steps, const std::string& what) {
  rethrow_edited([&](Error& e) {
    ErrorAccess::set(e, e.function(), e.argument(), text(e.given(), " (step ", t, " of ", steps, " of ", what, ")"));
  });
}

const char* literal_at(std::int32_t code) {
  return code ? reinterpret_cast<const char*>(reinterpret_cast<std::intptr_t>(kNamesOrigin) + code) : nullptr;
}
const char* function_name(std::int32_t code) { return code ? origin_of(code).function : nullptr; }

}  // namespace kassette::ops
