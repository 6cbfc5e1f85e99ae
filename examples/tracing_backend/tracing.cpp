// examples/tracing_backend/tracing.cpp - a backend that counts, times and checks every op, and runs it on the built-in
// backend.
//
//   KERAS_BACKEND=tracing ./kassette run script.cpp      prints a table to stderr when the program ends
//
// kassette::external::call("trace_report") returns the table as text at any time, "trace_reset" starts over.
#include <kassette/backend.h>
#include <kassette/external_backend.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace K = kassette::backend;
using kassette::Tensor;
using kassette::external::Call;
using kassette::external::Code;
using kassette::external::Value;

namespace {

struct Row {
  long calls = 0;
  double seconds = 0;
};
struct Trace {
  std::mutex mutex;
  std::map<std::string, Row> rows;
  std::string first_nan;
};
Trace& trace() {
  static Trace* t = new Trace;  // the table is printed after static objects are gone
  return *t;
}

bool has_nan(const Tensor& x) {
  if (!x.defined() || x.symbolic() || !x.dtype().is_float()) return false;
  Tensor v = K::eval(x);  // without history
  return K::any(K::not_equal(v, v)).item<bool>();
}
/// Whether a value, or anything in a list, is not a number.
bool has_nan(const Value& v) {
  if (v.kind() == Value::kTensor) return has_nan(v.as_tensor());
  if (v.kind() == Value::kList)
    for (int i = 0; i < v.size(); ++i)
      if (has_nan(v[i])) return true;
  return false;
}

/// Counts, times and checks one run of f.
template <class F>
Value traced(const std::string& name, const Value* args, int n_args, F f) {
  auto start = std::chrono::steady_clock::now();
  Value result = f();
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  bool made_nan = has_nan(result) && std::none_of(args, args + n_args, [](const Value& v) { return has_nan(v); });
  Trace& t = trace();
  std::lock_guard<std::mutex> lock(t.mutex);
  Row& row = t.rows[name];
  ++row.calls;
  row.seconds += seconds;
  if (made_nan && t.first_nan.empty()) t.first_nan = name + ", call " + std::to_string(row.calls);
  return result;
}

/// A function of ours whose calls are traced as well.
Value run_function(void* state, const Value* args, int n_args) {
  return traced("function()", args, n_args, [&] { return (*static_cast<const Value*>(state))({args[0]}); });
}
Value traced_function(Value function) {
  return Code{run_function, [](void* state) { delete static_cast<Value*>(state); }, new Value(std::move(function))};
}

Value run(const Call& call) {
  std::vector<Value> args;
  for (int i = 0; i < call.size(); ++i) args.push_back(call[i]);
  Value result = traced(call.name(), args.data(), call.size(), [&] { return call.built_in(); });
  return std::string(call.name()) == "function" ? traced_function(result) : result;
}

std::string report() {
  Trace& t = trace();
  std::lock_guard<std::mutex> lock(t.mutex);
  std::vector<std::pair<std::string, Row>> rows(t.rows.begin(), t.rows.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
  std::string s = "op                                calls    total ms\n";
  char line[128];
  for (const auto& [name, row] : rows) {
    std::snprintf(line, sizeof line, "%-30s %8ld %11.3f\n", name.c_str(), row.calls, row.seconds * 1e3);
    s += line;
  }
  return s + (t.first_nan.empty() ? "no op made a NaN\n" : "the first NaN came from " + t.first_nan + "\n");
}
void print_at_exit() {
  if (!trace().rows.empty()) std::fputs(report().c_str(), stderr);
}

const kassette::external::Entry kEntries[] = {
    {"*", run},
    {"trace_report", [](const Call&) { return Value(report()); }},
    {"trace_reset",
     [](const Call&) {
       Trace& t = trace();
       std::lock_guard<std::mutex> lock(t.mutex);
       t.rows.clear();
       t.first_nan.clear();
       return Value();
     }},
};

}  // namespace

extern "C" const kassette::external::Table* kassette_external_backend() {
  static const kassette::external::Table table{kassette::external::kAbi, 3, kEntries};
  std::atexit(print_at_exit);
  return &table;
}
