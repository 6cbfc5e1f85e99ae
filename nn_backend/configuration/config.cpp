// nn_backend/configuration/config.cpp - configuration values and counters.
#include <kassette/backend/config.h>
#include <kassette/backend/introspection.h>

#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "core/text.h"
#include "nn_backend/configuration/load_backend.h"
#include "nn_backend/configuration/settings.h"
#include "nn_backend/snapshot.h"
#include "nn_backend/windows.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/engine/dispatch.h"
#include "ops/engine/error_attribution.h"
#include "ops/engine/operand.h"

namespace kassette {
using namespace ops;
namespace backend {
using namespace detail;
namespace {

constexpr const char kFirst[] = "channels_first", kLast[] = "channels_last";

constinit std::atomic<double> epsilon_in_use{1e-7};
constinit std::atomic<bool> channels_first{false};
constinit std::atomic<bool> manual_initialization{false};
constinit std::atomic<const std::string*> backend_name{nullptr};

// Made at first use and never freed: it may be used while the program ends.
constinit std::mutex uids_mutex;
constinit std::map<std::string, std::int64_t>* uids = nullptr;

bool names_channels_first(const std::string& text, const At& at, Name given) {
  if (text == kFirst) return true;
  if (text != kLast)
    fail<ValueError>(at, "is ", quoted(given), kExpected, "it must be \"channels_last\" or \"channels_first\"");
  return false;
}

/// Held while the configuration is read; a backend that asks for the configuration while it is loaded gets what has
/// been read so far.
struct Loading {
  std::recursive_mutex mutex;
  bool now = false;
  std::set<std::string> names;  // of all backends that were in use: other threads may be reading one
};
Loading& loading() {
  static Loading* l = new Loading;  // never destroyed: it may be used while the program ends
  return *l;
}

/// Reads keras.json and the environment, then loads the backend. If that throws, the next use tries again.
void load_locked(Loading& l) {
  Scoped<bool> now(l.now, true);
  Settings s = read_settings();
  set_default_float(s.floatx);
  epsilon_in_use.store(s.epsilon, std::memory_order_relaxed);
  channels_first.store(s.channels_first, std::memory_order_relaxed);
  backend_name.store(&*l.names.insert(s.backend).first, std::memory_order_release);
  use_backend(load_backend(s.backend, s.source));
}

void ensure_loaded() {
  if (active_backend.load(std::memory_order_acquire) == ActiveBackend::unset) load_configuration();
}

}  // namespace
}  // namespace backend

void ops::load_configuration() {
  if (active_backend.load(std::memory_order_acquire) != ActiveBackend::unset) return;
  backend::Loading& l = backend::loading();
  std::lock_guard<std::recursive_mutex> lock(l.mutex);
  if (!l.now && active_backend.load(std::memory_order_acquire) == ActiveBackend::unset) backend::load_locked(l);
}

namespace backend {

void reload() {
  Loading& l = loading();
  std::lock_guard<std::recursive_mutex> lock(l.mutex);
  if (l.now) return;
  active_backend.store(ActiveBackend::unset, std::memory_order_release);
  load_locked(l);
}

Text backend() {
  ensure_loaded();
  return Text(*backend_name.load(std::memory_order_acquire));
}

double epsilon() {
  ensure_loaded();
  return epsilon_in_use.load(std::memory_order_relaxed);
}
void set_epsilon(double e) {
  ensure_loaded();
  epsilon_in_use.store(e, std::memory_order_relaxed);
}

DType floatx() {
  ensure_loaded();
  return default_float();
}
void set_floatx(Name floatx) {
  ensure_loaded();
  for (DType d : {float16, float32, float64})
    if (string_of(floatx) == d.name()) {
      set_default_float(d);
      return;
    }
  fail<ValueError>({"set_floatx", "floatx"}, "is ", quoted(floatx), kExpected,
                   "it must be \"float16\", \"float32\" or \"float64\"");
}

Tensor cast_to_floatx(const Operand& x) {
  if (is_tensor_operand(x) && is_foreign(tensor_of(x))) return cast(x, floatx());
  Tensor t = as_tensor(x, DType(), {"cast_to_floatx", "x"});
  if (!t.defined()) fail_empty({"cast_to_floatx", "x"});
  return attribute_errors("cast_to_floatx", [&] { return copy_if_variable(ops::cast(t, default_float())); });
}

Text image_data_format() {
  ensure_loaded();
  return channels_first.load(std::memory_order_relaxed) ? Text(kFirst) : Text(kLast);
}
void set_image_data_format(Name data_format) {
  ensure_loaded();
  channels_first.store(
      names_channels_first(string_of(data_format), {"set_image_data_format", "data_format"}, data_format),
      std::memory_order_relaxed);
}
bool detail::is_channels_first(const At& at, Name given) {
  if (!given.given()) {
    ensure_loaded();
    return channels_first.load(std::memory_order_relaxed);
  }
  std::string lower = string_of(given);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return names_channels_first(lower, at, given);
}
Text normalize_data_format(Name value) {
  return is_channels_first({"normalize_data_format", "value"}, value) ? Text(kFirst) : Text(kLast);
}

bool detail::initialises_variables() { return !manual_initialization.load(std::memory_order_relaxed); }
void manual_variable_initialization(bool value) {
  KASSETTE_DISPATCH(manual_variable_initialization, value);
  manual_initialization.store(value, std::memory_order_relaxed);
}

std::int64_t get_uid(Name prefix) {
  KASSETTE_DISPATCH(get_uid, prefix);
  std::lock_guard<std::mutex> lock(uids_mutex);
  if (!uids) uids = new std::map<std::string, std::int64_t>;
  return ++(*uids)[string_of(prefix)];
}
void reset_uids() {
  KASSETTE_DISPATCH(reset_uids);
  std::lock_guard<std::mutex> lock(uids_mutex);
  if (uids) uids->clear();
}

}  // namespace backend
}  // namespace kassette
