// tests/settings.cpp - settings of the process, read and put back.
#include "tests/settings.h"

#include <kassette/backend.h>

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <sstream>

#include "autograd/loops/checkpoint.h"
#include "devices/cpu/threads.h"
#include "nn_backend/configuration/settings.h"
#include "ops/engine/dispatch.h"

namespace kassette::test {
using namespace ops;
namespace {

namespace K = kassette::backend;

std::map<std::string, std::string> environment() {
  std::map<std::string, std::string> all;
  for (char** e = environ; e && *e; ++e) {
    const std::string entry = *e;
    const std::size_t at = entry.find('=');
    if (at != std::string::npos) all[entry.substr(0, at)] = entry.substr(at + 1);
  }
  return all;
}

int learning_phase() {
  Tensor phase = K::learning_phase();
  return phase.symbolic() ? -1 : phase.item<int>();
}

std::string text(const PrintOptions& options) {
  std::ostringstream os;
  os << options;
  return os.str();
}
std::string text(const FastPathThresholds& t) {
  static_assert(sizeof t == 10 * sizeof(std::int64_t), "a field that is not compared");
  std::ostringstream os;
  os << t.chain_part << ' ' << t.long_chunks << ' ' << t.streamed << ' ' << t.prefetched << ' ' << t.loop_chain_row
     << ' ' << t.loop_chain << ' ' << t.loop_chain_part << ' ' << t.function_node << ' ' << t.released << " off "
     << t.off;
  return os.str();
}
template <class T>
std::string text(const T& value) {
  std::ostringstream os;
  os << value;
  return os.str();
}

}  // namespace

Settings Settings::now() {
  Settings s;
  s.threads = num_threads();
  s.grain_divisor = devices::grain_divisor;
  s.level = devices::cpu_level();
  s.log = log_level();
  s.allow_tf32 = kassette::allow_tf32();
  s.allow_cudnn = kassette::allow_cudnn();
  s.memory_limit = memory_stats().limit;
  s.checkpoint_steps = kassette::autograd::checkpoint_steps();
  s.print = print_options();
  s.fast_paths = fast_path_thresholds;
  s.counts_fast_paths = fast_path_counts.on;
  s.initialises_variables = K::detail::initialises_variables();
  s.environment = test::environment();
  s.configured = built_in_active();  // asking for the rest would read keras.json
  if (!s.configured) return s;
  s.floatx = K::floatx().name();
  s.backend = K::backend().c_str();
  s.data_format = K::image_data_format().c_str();
  s.epsilon = K::epsilon();
  s.learning_phase = test::learning_phase();
  return s;
}

void Settings::restore() const {
  for (const auto& [name, value] : test::environment())
    if (!environment.count(name)) unsetenv(name.c_str());
  for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
  // Where no configuration had been read, an external backend that a test has loaded is left again.
  if (configured ? !built_in_active() || !(K::backend() == backend) : external_backend() != nullptr) K::reload();
  set_num_threads(threads);
  devices::grain_divisor = grain_divisor;
  devices::set_cpu_level(level);
  set_log_level(log);
  set_allow_tf32(allow_tf32);
  set_allow_cudnn(allow_cudnn);
  if (memory_stats().limit != memory_limit) set_memory_limit(memory_limit);
  autograd::set_checkpoint_steps(checkpoint_steps);
  set_print_options(print);
  fast_path_thresholds = fast_paths;
  fast_path_counts.on = counts_fast_paths;
  if (!configured) return;
  K::manual_variable_initialization(!initialises_variables);
  K::set_floatx(floatx);
  K::set_image_data_format(data_format);
  K::set_epsilon(epsilon);
  if (test::learning_phase() != learning_phase) {
    if (learning_phase < 0) K::clear_session();  // the one way to no phase; uids begin again too
    else K::set_learning_phase(learning_phase);
  }
}

std::string Settings::change() const {
  const Settings then = now();
  std::string changes;
  auto compare = [&](const std::string& name, const auto& is, const auto& was) {
    const std::string a = text(is), b = text(was);
    if (a != b) changes += (changes.empty() ? "" : "; ") + name + ": " + a + ", was " + b;
  };
  compare("num_threads", then.threads, threads);
  compare("grain_divisor", then.grain_divisor, grain_divisor);
  compare("CPU level", devices::level_name(then.level), devices::level_name(level));
  compare("log_level", static_cast<int>(then.log), static_cast<int>(log));
  compare("allow_tf32", then.allow_tf32, allow_tf32);
  compare("allow_cudnn", then.allow_cudnn, allow_cudnn);
  compare("memory_limit", then.memory_limit, memory_limit);
  compare("checkpoint_steps", then.checkpoint_steps, checkpoint_steps);
  compare("print_options", then.print, print);
  compare("fast_path_thresholds", then.fast_paths, fast_paths);
  compare("fast_path_counts.on", then.counts_fast_paths, counts_fast_paths);
  compare("manual_variable_initialization", !then.initialises_variables, !initialises_variables);
  for (const auto& [name, value] : environment) {
    const auto at = then.environment.find(name);
    if (at == then.environment.end()) compare(name, "not there", value);
    else compare(name, at->second, value);
  }
  for (const auto& [name, value] : then.environment)
    if (!environment.count(name)) compare(name, value, "not there");
  if (!configured) return changes;
  if (!then.configured) return changes + (changes.empty() ? "" : "; ") + "the backend: not the one before";
  compare("floatx", then.floatx, floatx);
  compare("backend", then.backend, backend);
  compare("image_data_format", then.data_format, data_format);
  compare("epsilon", then.epsilon, epsilon);
  compare("learning_phase", then.learning_phase, learning_phase);
  return changes;
}

}  // namespace kassette::test
