// tests/fuzz/random_calls.cpp - calls functions of K, np and nn at random for some seconds:
// `kassette_random_calls [seconds [seed [how many]]]`. They may throw only an Error, or what a callable throws;
// replayed by a function they give the same results as eagerly. A finding is printed with the seed of its call:
// `kassette_random_calls 0 SEED 1` repeats only that call.
#include <kassette/backend.h>
#include <kassette/print.h>
#include <kassette/runtime.h>
#include <kassette/testing.h>

#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <new>
#include <thread>

#include "core/impl.h"
#include "core/sanitizers.h"
#include "tests/fuzz/calls.h"

namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::test;

namespace {

constexpr std::int64_t kMemory = 64 << 20;      // bytes of all tensors
constexpr rlim_t kAddresses = rlim_t{4} << 30;  // bytes of everything
constexpr int kLongest = 30;                    // seconds of one call, of the processor's: a machine may be busy
constexpr unsigned kPatience = 600;             // and of the clock

/// The message that the alarm or a fatal signal writes before the process ends.
char now[4096];

void say_where(int signal) {
  const bool endless = signal == SIGALRM || signal == SIGPROF;
  const char* why = endless ? "\nrandom_calls: no end of " : "\nrandom_calls: a fatal signal in ";
  (void)!write(2, why, std::strlen(why));
  (void)!write(2, now, std::strlen(now));
  (void)!write(2, "\n", 1);
  if (endless) _exit(1);
  ::signal(signal, SIG_DFL);
  raise(signal);
}

/// The outcome of a call: values, or the first line of what was thrown.
struct Outcome {
  Tensors values;
  std::string thrown;
  bool failed = false, wrong = false, thrown_by_callable = false, no_memory = false;
};

template <class F>
Outcome outcome_of(F f) {
  Outcome o;
  try {
    o.values = f();
    return o;
  } catch (const Thrown&) {
    o.thrown = "what the callable throws";
    o.thrown_by_callable = true;
  } catch (const MemoryError& e) {
    o.thrown = e.what();
    o.no_memory = true;
  } catch (const Error& e) {
    o.thrown = e.what();
    o.wrong = o.thrown.empty() || o.thrown.find('\n') != std::string::npos;
  } catch (const std::bad_alloc&) {
    o.thrown = "bad_alloc: more than what tensors may take";
    o.wrong = true;
  } catch (const std::exception& e) {
    o.thrown = std::string("no kassette::Error: ") + e.what();
    o.wrong = true;
  } catch (...) {
    o.thrown = "an exception of another kind";
    o.wrong = true;
  }
  o.failed = true;
  return o;
}

enum class Knows { sizes, some, ranks, nothing };
const char* words(Knows k) {
  return k == Knows::sizes ? "known sizes" : k == Knows::some ? "some sizes" : k == Knows::ranks ? "ranks" : "no rank";
}

Tensor placeholder_for(const Tensor& x, Knows knows, Random& r) {
  if (knows == Knows::nothing) return K::placeholder(None, None, x.dtype());
  if (knows == Knows::ranks) return K::placeholder(None, x.ndim(), x.dtype());
  std::int64_t dims[kMaxRank];
  int rank = 0;
  for (std::int64_t n : x.shape()) dims[rank++] = knows == Knows::some && r.one_in(2) ? -1 : n;
  return K::placeholder(Shape(dims, rank), None, x.dtype());
}

/// How far a played result is the eager one: to the bit, but for its last digits, or in its shape and dtype alone.
enum class Same { bits, digits, shape };

bool same(const Tensor& a, const Tensor& b, Same how) {
  if (!a.defined() || !b.defined()) return a.defined() == b.defined();
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  double apart = 0;
  if (how != Same::bits && b.dtype().is_float()) {
    double largest = 0;
    for (double v : b.to_vector<double>()) largest = std::fmax(largest, std::isfinite(v) ? std::fabs(v) : INFINITY);
    if (how == Same::shape || largest > 1e6 || b.dtype().size() < 4) return true;  // nothing is known of the digits
    apart = 1e-3 * (1 + largest);
  }
  return testing::compare(a, b, {.rtol = 0, .atol = apart}).message.empty();
}

/// Whether a message has one of these words: for errors that a function of placeholders with unknown sizes may throw
/// while it is made.
bool has_one_of(const std::string& said, std::initializer_list<const char*> words) {
  for (const char* w : words)
    if (said.find(w) != std::string::npos) return true;
  return false;
}
/// Whether a function cannot report an error as the eager call does: a fold of one element and an rnn of no steps run
/// no step, which eagerly tells the shape; indices of unknown rank are not a vector; sizes beyond int32 do not fit the
/// tensor to which a shape is folded; quantiles are tested where they have values, which a device need not wait for.
bool differs_by_nature(const Call& call, const std::string& said) {
  const Shape shape = call.in[0].shape();
  const bool no_step = (call.text.compare(0, 4, "fold") == 0 && shape.rank() > 0 && shape[0] <= 1) ||
                       (call.text.compare(0, 3, "rnn") == 0 && shape.rank() > 1 &&
                        shape[call.text.find("time_major") == std::string::npos ? 1 : 0] == 0);
  return no_step || has_one_of(said, {"the rank must be 2: (entries, axes)", "does not fit int32", "quantile: q has "});
}
bool asks_for_more(const std::string& said) {
  return has_one_of(said, {"known", "declare", "None", "(...)", "placeholder"});
}

/// The order of operations may follow from sizes, as far as they are known: which product of several comes first, which
/// axes broadcast, and which side of a matrix is longer in a gradient. Then results differ by rounding, which a matrix
/// that is nearly singular enlarges without limit.
Same sameness(const Call& call) {
  const std::string function = call.text.substr(0, call.text.find('('));
  if (function == "multi_dot" || function == "einsum") return Same::digits;
  if (!has_one_of(call.text, {", with gradients"})) return Same::bits;
  const bool singular = function == "pinv" || function == "svd" || function == "polyfit" || function == "lstsq";
  return singular ? Same::shape : Same::bits;
}

/// The same tensor may be passed twice, and then so is its placeholder.
std::int64_t first_use(const Tensors& in, const Tensor& x) {
  std::int64_t i = 0;
  while (Access::impl(in[i]) != Access::impl(x)) ++i;
  return i;
}

/// A placeholder once, in its first place.
Tensors once(const Tensors& list, const Tensors& places) {
  Tensors found;
  for (std::int64_t i = 0; i < places.size(); ++i)
    if (first_use(places, places[i]) == i) found.push_back(list[i]);
  return found;
}

/// What is wrong; empty if nothing is.
std::string replayed(const Call& call, const Outcome& eager, Knows knows, Random& r) {
  Tensors xs;
  for (const Tensor& x : call.in) {
    std::int64_t same_as = first_use(call.in, x);
    xs.push_back(same_as < xs.size() ? xs[same_as] : placeholder_for(x, knows, r));
  }
  Function f;
  Tensors ys;
  Outcome made = outcome_of([&] {
    ys = call.run(xs);
    Tensors wanted;
    for (const Tensor& y : ys)
      if (y.defined()) wanted.push_back(y);
    f = K::function(once(xs, xs), wanted);
    return Tensors();
  });
  if (made.wrong) return "making the function: " + made.thrown;
  if (made.failed) {
    bool fair = eager.failed || made.no_memory || made.thrown_by_callable || differs_by_nature(call, made.thrown) ||
                (knows != Knows::sizes && asks_for_more(made.thrown));
    return fair ? "" : "making the function: " + made.thrown + ", and eagerly there is a value";
  }
  Outcome played = outcome_of([&] { return f(once(call.in, xs)); });
  if (played.wrong) return "played: " + played.thrown;
  if (played.no_memory || eager.no_memory || eager.thrown_by_callable || played.thrown_by_callable) return "";
  if (played.failed != eager.failed && differs_by_nature(call, played.thrown + eager.thrown)) return "";
  // Sizes that decide on the ops, and turn out to be others than were assumed.
  if (played.failed && !eager.failed && knows != Knows::sizes && has_one_of(played.thrown, {"must be known when"}))
    return "";
  if (played.failed != eager.failed)
    return played.failed ? "played: " + played.thrown + ", and eagerly there is a value"
                         : "played there is a value, and eagerly " + eager.thrown;
  if (played.failed || call.draws) return "";
  std::string wrong;
  (void)outcome_of([&] {  // there may be no memory for it
    std::int64_t k = 0;
    for (std::int64_t i = 0; i < eager.values.size() && i < ys.size() && wrong.empty(); ++i) {
      if (!ys[i].defined()) continue;
      const Tensor& got = played.values[k++];
      if (eager.values[i].defined() && !same(got, eager.values[i], sameness(call)))
        wrong = "result " + std::to_string(i) + ": " +
                testing::compare(got, eager.values[i], {.rtol = 0, .atol = 0}).message + " played against eager";
    }
    return Tensors();
  });
  return wrong;
}

std::string finding(const Call& call, std::uint64_t seed) {
  Random r(seed ^ 0x5eed);
  Outcome eager = outcome_of([&] {
    Call again = call;
    Tensors in;
    if (!call.only_eager)  // variables, so that gradients may be asked for
      for (const Tensor& x : call.in) {
        std::int64_t same_as = first_use(call.in, x);
        in.push_back(same_as < in.size() ? in[same_as] : x.dtype().is_float() ? K::variable(x, x.dtype()) : x);
      }
    else in = call.in;
    Tensors ys = call.run(in);
    for (Tensor& y : ys)
      if (y.defined()) y = K::eval(y);
    return ys;
  });
  if (eager.wrong) return "eagerly: " + eager.thrown;
  if (call.only_eager) return "";
  for (Knows knows : {Knows::sizes, Knows::some, Knows::ranks, Knows::nothing})
    if (std::string wrong = replayed(call, eager, knows, r); !wrong.empty())
      return std::string("with ") + words(knows) + " " + wrong;
  return "";
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 10;
  std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : static_cast<std::uint64_t>(time(nullptr)) << 20;
  const std::int64_t most = argc > 3 ? std::atoll(argv[3]) : INT64_MAX;
  set_print_sink([](const char*) {});
  set_memory_limit(kMemory);
  if (!kAddressSanitizer && !kThreadSanitizer) {                                        // which reserve more
    const rlim_t of_threads = rlim_t{256 << 20} * std::thread::hardware_concurrency();  // stacks and heaps
    const rlimit addresses{kAddresses + of_threads, kAddresses + of_threads};
    setrlimit(RLIMIT_AS, &addresses);
  }
  for (int signal : {SIGALRM, SIGPROF, SIGABRT, SIGSEGV, SIGBUS, SIGFPE}) ::signal(signal, say_where);
  std::printf("random_calls: %g s from seed %llu\n", seconds, static_cast<unsigned long long>(seed));
  std::map<std::string, int> findings;  // by function
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  std::int64_t n = 0;
  for (; n < most && (argc > 3 || std::chrono::steady_clock::now() < end); ++n, ++seed) {
    std::snprintf(now, sizeof now, "the making of the call of seed %llu", static_cast<unsigned long long>(seed));
    alarm(kPatience);
    const itimerval limit{{0, 0}, {kLongest, 0}};
    setitimer(ITIMER_PROF, &limit, nullptr);
    Call call = random_call(seed);
    std::snprintf(now, sizeof now, "seed %llu: %s", static_cast<unsigned long long>(seed), call.text.c_str());
    if (argc > 3) std::puts(now);
    const std::int64_t nodes = live_nodes();
    std::string wrong = finding(call, seed);
    if (wrong.empty() && live_nodes() > nodes + 1) wrong = std::to_string(live_nodes() - nodes) + " nodes stay behind";
    if (wrong.empty()) continue;
    if (++findings[call.text.substr(0, call.text.find('('))] <= 3) std::printf("%s\n  %s\n", now, wrong.c_str());
    std::fflush(stdout);
  }
  alarm(0);
  const itimerval none{};
  setitimer(ITIMER_PROF, &none, nullptr);
  int all = 0;
  for (const auto& [name, count] : findings) all += count;
  std::printf("random_calls: %lld calls, %d findings\n", static_cast<long long>(n), all);
  return all ? 1 : 0;
}
