// nn_backend/config.cpp - configuration values and counters.
#include <kassette/backend/config.h>

#include <atomic>
#include <cctype>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "core/text.h"
#include "ops/arithmetic.h"
#include "ops/dispatch.h"
#include "ops/operand.h"

namespace kassette {
namespace backend {
namespace {

constexpr const char kFirst[] = "channels_first", kLast[] = "channels_last";

constinit std::atomic<double> epsilon_in_use{1e-7};
constinit std::atomic<bool> channels_first{false};

// Made when first asked for and never freed: a program may ask while it ends.
constinit std::mutex uids_mutex;
constinit std::map<std::string, std::int64_t>* uids = nullptr;

const char* quoted(Name name) { return name.text() ? name.text() : "None"; }

bool is_channels_first(const char* text, const char* what, Name given) {
  if (text && !std::strcmp(text, kFirst)) return true;
  if (!text || std::strcmp(text, kLast))
    fail<ValueError>(what, ": unknown data format '", quoted(given), "'; expected 'channels_first' or 'channels_last'");
  return false;
}

}  // namespace

}  // namespace backend

void load_configuration() {
  if (engine_in_use.load(std::memory_order_acquire) == Engine::unset) use_backend(nullptr);
}

namespace backend {

Text backend() { return Text("tensorflow"); }

double epsilon() { return epsilon_in_use.load(std::memory_order_relaxed); }
void set_epsilon(double e) { epsilon_in_use.store(e, std::memory_order_relaxed); }

DType floatx() { return default_float(); }
void set_floatx(Name floatx) {
  for (DType d : {float16, float32, float64})
    if (floatx.text() && !std::strcmp(floatx.text(), d.name())) {
      set_default_float(d);
      return;
    }
  fail<ValueError>("set_floatx: unknown floatx type '", quoted(floatx), "'; expected 'float16', 'float32' or 'float64'");
}

Tensor cast_to_floatx(const Operand& x) {
  Tensor t = as_tensor(x, DType(), "cast_to_floatx");
  if (!t.defined()) fail<ValueError>("cast_to_floatx: an empty Tensor (an uninitialised variable?)");
  return cast(t, default_float());
}

Text image_data_format() {
  return channels_first.load(std::memory_order_relaxed) ? Text(kFirst) : Text(kLast);
}
void set_image_data_format(Name data_format) {
  channels_first.store(is_channels_first(data_format.text(), "set_image_data_format", data_format), std::memory_order_relaxed);
}
Text normalize_data_format(Name value) {
  if (!value.text()) return image_data_format();
  std::string lower = value.text();
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return is_channels_first(lower.c_str(), "normalize_data_format", value) ? Text(kFirst) : Text(kLast);
}

std::int64_t get_uid(Name prefix) {
  KASSETTE_DISPATCH(get_uid, prefix);
  std::lock_guard<std::mutex> lock(uids_mutex);
  if (!uids) uids = new std::map<std::string, std::int64_t>;
  return ++(*uids)[prefix.text() ? prefix.text() : ""];
}
void reset_uids() {
  KASSETTE_DISPATCH(reset_uids);
  std::lock_guard<std::mutex> lock(uids_mutex);
  if (uids) uids->clear();
}

}  // namespace backend
}  // namespace kassette
