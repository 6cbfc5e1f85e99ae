// tests/memory/failing_memory.cpp - the n-th allocation fails, for each n until the call succeeds: in a fresh
// process and in a warm one. The process must not end or hang: a MemoryError or a std::bad_alloc is thrown, nothing has
// changed, and the same call made again gives the same bits.
#include <kassette/backend.h>
#include <kassette/io.h>
#include <kassette/numpy.h>
#include <kassette/profile.h>
#include <kassette/runtime.h>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "tests/memory/refused.h"

namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::test::allocations;

// ---- what is tried --------------------------------------------------------------------------------------------------

namespace {

using Bits = std::string;

Bits bits(const Tensors& ts) {
  Bits all;
  for (const Tensor& t : ts) {
    Tensor v = K::get_value(K::cast(t, "float64"));
    all.append(reinterpret_cast<const char*>(v.data<double>()),
               static_cast<std::size_t>(K::count_params(v)) * sizeof(double));
  }
  return all;
}

/// One allocation fails, so that the second attempt succeeds; if all fail from then on, throws what f threw.
template <class F>
auto until_it_succeeds(F f) {
  try {
    return f();
  } catch (const std::bad_alloc&) {
    if (left > 0) throw;
  } catch (const MemoryError&) {
    if (left > 0) throw;
  }
  return f();
}

/// Inputs are made before anything fails. Each answers its result, and can be made again where it threw.
struct Scenario {
  const char* name;
  std::function<Bits()> (*make)();
};

Tensor ramp(const Shape& shape) {
  std::vector<double> v;
  for (std::int64_t i = 0, n = shape.numel(); i < n; ++i) v.push_back(0.01 * static_cast<double>(i * 7 % 23) - 0.1);
  return K::reshape(K::constant(v, "float32"), shape);
}

std::string folder;
std::string path(const char* name) { return folder + "/" + name; }

int files() {
  const std::int64_t armed = left.exchange(0);  // what counts them fails nowhere
  int n = 0;
  for (const auto& e : std::filesystem::directory_iterator(folder)) n += e.is_regular_file();
  left = armed;
  return n;
}

/// Writes and reads again; a failing write leaves what was there before.
template <class Save, class Load>
std::function<Bits()> file(const char* name, Save save, Load load) {
  save(path(name));
  return [=, wanted = files()] {
    if (files() != wanted) std::printf("  files stay behind\n"), std::abort();
    save(path(name));
    return load(path(name));
  };
}

constexpr Scenario kScenarios[] = {
    {"a training step",
     [] {
       Tensor x = ramp({40, 30}), y = ramp({40, 20}), w = K::variable(ramp({30, 20})),
              v = K::variable(K::zeros({30, 20}));
       const Bits start = bits({w, v});
       return std::function<Bits()>([=] {
         if (bits({w, v}) != start) std::printf("  the variables have changed\n"), std::abort();
         Tensor loss = K::mean(K::square(K::softmax(K::dot(x, K::tanh(w))) - y));
         Tensor g = K::gradients(loss, {w})[0];
         Tensor next = w - 0.1 * g;
         Bits b = bits({next, loss, K::concatenate({x, y})});
         K::update(w, next);
         left = 0;
         K::set_value(w, ramp({30, 20}));
         return b;
       });
     }},
    {"observed: a profile, and the search for a NaN",
     [] {
       Tensor x = ramp({20, 30}), w = K::variable(ramp({30, 20})), in = K::placeholder({K::None, 30});
       Tensor loss = K::mean(K::square(K::softmax(K::dot(in, w)))), g = K::gradients(loss, {w})[0];
       auto f = K::function({in}, {loss, g}, {{w, w - g}});
       const Bits start = bits({w});
       const std::string trace = path("trace.json");
       return std::function<Bits()>([=] {
         if (bits({w}) != start) std::printf("  the variable has changed\n"), std::abort();
         Tensors out;
         {
           auto p = profile(Name(trace.c_str()));
           const auto guard = detect_nan();
           out = f({x});
           left = 0;  // w has changed
           K::set_value(w, ramp({30, 20}));
         }
         return bits(out);
       });
     }},
    {"a trace, written",
     [] {
       Tensor x = ramp({20, 30});
       auto p = std::make_shared<Profile>(Name(K::None));
       K::softmax(x);
       p->stop();
       return file(
           "trace.json", [p](const std::string& to) { p->save(Name(to.c_str())); },
           [](const std::string& from) {
             std::ifstream in(from);
             return Bits(std::istreambuf_iterator<char>(in), {});
           });
     }},
    {"a function, made and called",
     [] {
       Tensor x = ramp({20, 30}), w = K::variable(ramp({30, 20}));
       const Bits start = bits({w});
       return std::function<Bits()>([=] {
         if (bits({w}) != start) std::printf("  the variable has changed\n"), std::abort();
         Tensor in = K::placeholder({K::None, 30});
         Tensor loss = K::sum(K::relu(K::dot(in, w)), 1), g = K::gradients(loss, {w})[0];
         auto f = K::function({in}, {loss, K::cumsum(g)}, {{w, w - g}});
         Tensors out = f({x});
         left = 0;  // w has changed
         K::set_value(w, ramp({30, 20}));
         return bits(out);
       });
     }},
    {"a function with updates of every kind, called",
     [] {
       Tensor x = ramp({20, 30}), w = K::variable(ramp({30, 20})), v = K::variable(ramp({20, 30})),
              n = K::variable(K::ones({200, 100}, "int32"), "int32"), m = K::variable(7, "int32");
       const Bits start = bits({w, v, n, m});
       return std::function<Bits()>([=] {
         if (bits({w, v, n, m}) != start) std::printf("  the variables have changed\n"), std::abort();
         Tensor in = K::placeholder({20, 30}), one = K::cast(K::max(in), "int32") * 0 + 1,
                many = K::ones({200, 100}, "int32") * one;
         auto f = K::function({in}, {},
                              {K::update_add(n, many), K::update(w, K::transpose(in) * 0.5 + w),
                               K::update_sub(v, in * 3), K::update_add(m, one), K::update_add(n, many * 2)});
         const Tensor before = K::identity(n);  // shares its bytes
         f({x});
         const std::int64_t left_then = left.exchange(0);
         Bits b = bits({w, v, n, m, before});
         K::batch_set_value({w, v, n, m}, {ramp({30, 20}), ramp({20, 30}), K::ones({200, 100}, "int32"), 7});
         left = left_then;
         return b;
       });
     }},
    {"a function with draws, called",
     [] {
       Tensor x = ramp({20, 30}), w = K::variable(ramp({30, 20}));
       const Bits start = bits({w});
       return std::function<Bits()>([=] {
         Tensor in = K::placeholder({K::None, 30});
         auto f = K::function({in}, {K::dropout(K::dot(in, w), 0.5, None, 3)}, {{w, w * 0.5}});
         Tensors out = until_it_succeeds([&] {
           if (bits({w}) != start) std::printf("  the variable has changed\n"), std::abort();
           return f({x});
         });
         left = 0;
         K::set_value(w, ramp({30, 20}));
         return bits(out);
       });
     }},
    {"loops",
     [] {
       Tensor x = ramp({3, 4, 5}), h = ramp({3, 5}), w = K::variable(ramp({5, 5}));
       return std::function<Bits()>([=] {
         auto step = [&](const Tensor& t, const Tensors& s) {
           Tensor next = K::tanh(K::dot(t, w) + s[0]);
           return K::Step{next, {next}};
         };
         auto r = K::rnn(step, x, {h});
         Tensor g = K::gradients(K::sum(r.outputs), {w})[0];
         Tensor folded = K::foldl([](const Tensor& a, const Tensor& e) { return a * 0.5 + e; }, x);
         Tensor mapped = K::map_fn([](const Tensor& e) { return K::exp(e); }, x);
         return bits({r.outputs, g, folded, mapped});
       });
     }},
    {"loops of a function",
     [] {
       Tensor x = ramp({3, 4, 5}), h = ramp({3, 5}), w = K::variable(ramp({5, 5}));
       return std::function<Bits()>([=] {
         Tensor in = K::placeholder({K::None, K::None, 5}), start = K::placeholder({K::None, 5});
         auto step = [&](const Tensor& t, const Tensors& s) {
           Tensor next = K::tanh(K::dot(t, w) + s[0]);
           return K::Step{next, {next}};
         };
         auto r = K::rnn(step, in, {start});
         auto f = K::function({in, start}, {r.outputs, K::gradients(K::sum(r.outputs), {w})[0],
                                            K::map_fn([](const Tensor& e) { return K::exp(e); }, in)});
         return bits(f({x, h}));
       });
     }},
    {"draws",
     [] {
       K::set_random_seed(11);
       return std::function<Bits()>([] {
         Tensor made[8];
         // Each by itself: those before it are not made again.
         auto once = [&, i = 0](auto draw) mutable { made[i++] = until_it_succeeds(draw); };
         once([] { return K::random_normal({20, 30}); });
         once([] { return K::random_uniform({20, 30}); });
         once([] { return K::random_uniform({20}, 0, 9, "int32"); });
         once([] { return K::random_binomial({20}, 0.5); });
         once([] { return K::truncated_normal({20}); });
         once([] { return K::dropout(K::ones({20}), 0.5); });
         once([] { return K::random_normal_variable({20}, 0, 1); });
         once([] { return K::map_fn([](const Tensor& e) { return K::dropout(e, 0.5); }, K::ones({3, 20})); });
         left = 0;
         Bits b = bits({made[0], made[1], made[2], made[3], made[4], made[5], made[6], made[7]});
         K::set_random_seed(11);
         return b;
       });
     }},
    {"npy",
     [] {
       return file(
           "a.npy", [x = ramp({20, 30})](const std::string& p) { save_npy(p, x); },
           [](const std::string& p) { return bits({load_npy(p)}); });
     }},
    {"npz",
     [] {
       NamedTensors t;
       t.set("w", ramp({20, 30}));
       t.set("b", ramp({7}));
       return file(
           "a.npz", [t](const std::string& p) { save_npz(p, t); },
           [](const std::string& p) {
             NamedTensors all = load_npz(p);
             return bits({all["w"], all["b"]});
           });
     }},
    {"safetensors",
     [] {
       NamedTensors t;
       t.set("w", ramp({20, 30}));
       t.set("b", ramp({7}));
       t.set_metadata("format", "kassette");
       return file(
           "a.safetensors", [t](const std::string& p) { save_safetensors(p, t); },
           [](const std::string& p) {
             NamedTensors all = load_safetensors(p);
             return bits({all["w"], all["b"]});
           });
     }},
    {"npz, compressed",
     [] {
       NamedTensors t;
       t.set("w", ramp({20, 30}));
       return file(
           "c.npz", [t](const std::string& p) { save_npz(p, t, {.compress = true}); },
           [](const std::string& p) { return bits({load_npz(p)["w"]}); });
     }},
    {"npz, mapped, by name",
     [] {
       NamedTensors t;
       t.set("w", ramp({20, 30}));
       t.set("b", ramp({7}));
       return file(
           "b.npz", [t](const std::string& p) { save_npz(p, t); },
           [](const std::string& p) { return bits({load_npz(p, {"w"}, {.mmap = true})["w"]}); });
     }},
    {"idx",
     [] {
       return file(
           "a.idx", [x = K::cast(ramp({20, 30}), "int32")](const std::string& p) { save_idx(p, x); },
           [](const std::string& p) { return bits({load_idx(p)}); });
     }},
    {"csv",
     [] {
       return file(
           "a.csv", [x = ramp({20, 3})](const std::string& p) { save_csv(p, x); },
           [](const std::string& p) { return bits({load_csv(p)}); });
     }},
    {"png",
     [] {
       return file(
           "a.png", [x = K::cast(ramp({20, 30, 3}), "uint8")](const std::string& p) { save_png(p, x); },
           [](const std::string& p) { return bits({load_png(p)}); });
     }},
    {"keras.json",
     [] {
       std::ofstream(path("keras.json"))
           << R"({"floatx": "float64", "epsilon": 1e-05, "others": [1, {"a": "b"}], "backend": "tensorflow", "image_data_format": "channels_last"})";
       setenv("KERAS_HOME", folder.c_str(), 1);
       return std::function<Bits()>([] {
         K::reload();
         Bits b = std::string(K::floatx() == float64 ? "float64" : "float32") + std::to_string(K::epsilon());
         return b;
       });
     }},
};

// ---- the trial ------------------------------------------------------------------------------------------------------

enum End : int { kSucceeded = 0, kThrew = 3, kWrong = 4 };

/// One try in this process: the n-th allocation fails. What it threw, if it did, and whether another try gives what it
/// gave at first.
End once(const std::function<Bits()>& run, std::int64_t n, const Bits* wanted) {
  failed = false;
  left = n;
  End end = kSucceeded;
  Bits got;
  try {
    got = run();
  } catch (const MemoryError&) {
    end = kThrew;
  } catch (const std::bad_alloc&) {
    end = kThrew;
  } catch (const std::exception& e) {
    left = 0;
    std::printf("  allocation %lld: %s\n", static_cast<long long>(n), e.what());
    return kWrong;
  }
  left = 0;
  if (end == kThrew) got = run();
  if (wanted && got != *wanted) {
    std::printf("  allocation %lld: other bits\n", static_cast<long long>(n));
    return kWrong;
  }
  return end;
}

/// The status of a child that runs f.
template <class F>
int in_child(F f) {
  std::fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    alarm(120);
    int code = kWrong;
    try {
      code = f();
    } catch (const std::exception& e) {
      std::printf("  afterwards: %s\n", e.what());
    }
    std::fflush(stdout);
    _exit(code);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

std::string died(int status) {
  if (WIFSIGNALED(status))
    return WTERMSIG(status) == SIGALRM ? "hangs" : std::string("ends by ") + strsignal(WTERMSIG(status));
  return WEXITSTATUS(status) == kWrong ? "is wrong" : "";
}

int wrongs = 0;
void report(const Scenario& s, const char* how, std::int64_t n, const std::string& what) {
  std::printf("%s, %s, allocation %lld: %s\n", s.name, how, static_cast<long long>(n), what.c_str());
  ++wrongs;
}

/// Every n runs in a child process of its own, in which nothing of the library has run before.
void cold(const Scenario& s, bool ever_after) {
  const char* how = ever_after ? "cold, all that follow too" : "cold";
  std::int64_t n = 1;
  for (int bad = 0; bad < 3; n += ever_after ? 1 + n / 16 : 1 + n / 64) {
    int status = in_child([&] {
      all_after = ever_after;
      failed = false;
      left = n;  // the inputs too
      try {
        auto run = s.make();
        Bits first = run();
        if (!failed) return int(kSucceeded);
      } catch (const std::bad_alloc&) {
      } catch (const MemoryError&) {
      } catch (const std::exception& e) {
        left = 0;
        std::printf("  %s\n", e.what());
        return int(kWrong);
      }
      left = 0;
      auto run = s.make();
      Bits after = run(), again = run();
      return int(after == again ? kThrew : kWrong);
    });
    if (std::string what = died(status); !what.empty()) report(s, how, n, what), ++bad;
    else if (WEXITSTATUS(status) == kSucceeded) break;
  }
  std::printf("%s, %s: %lld allocations\n", s.name, how, static_cast<long long>(n));
}

void warm(const Scenario& s) {
  int status = in_child([&] {
    alarm(300);
    auto run = s.make();
    const Bits wanted = run();
    run();
    std::int64_t n = 1;
    int bad = 0;
    for (; bad < 3; ++n) {
      End end = once(run, n, &wanted);
      if (end == kWrong) ++bad;
      if (end == kSucceeded && !failed) break;
    }
    std::printf("%s, warm: %lld allocations\n", s.name, static_cast<long long>(n));
    return int(bad ? kWrong : kSucceeded);
  });
  if (std::string what = died(status); !what.empty()) report(s, "warm", 0, what);
}

/// Address space is limited: products need little of it, and OpenBLAS is not called, as it would retry for ever.
void short_of_space() {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  int status = in_child([] {
    alarm(30);
    Tensor x = ramp({200, 300}), y = ramp({300, 100}), positive = K::eye(50);
    long pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlimit old{}, low{};
    getrlimit(RLIMIT_AS, &old);
    low = {static_cast<rlim_t>(pages) * 4096 + (rlim_t(64) << 20), old.rlim_max};
    setrlimit(RLIMIT_AS, &low);
    if (K::dot(x, y).shape() != Shape{200, 100}) return int(kWrong);
    try {
      numpy::linalg::cholesky(positive);
      return int(kWrong);
    } catch (const MemoryError& e) {
      if (!std::strstr(e.what(), "cholesky: out of memory on cpu: ")) return int(kWrong);
    }
    setrlimit(RLIMIT_AS, &old);
    return int(numpy::linalg::cholesky(positive).shape() == Shape{50, 50} ? kSucceeded : kWrong);
  });
  if (std::string what = died(status); !what.empty())
    std::printf("products and factorisations where address space is short: %s\n", what.c_str()), ++wrongs;
#endif
}

}  // namespace

int main(int argc, char** argv) {
  folder = (std::filesystem::temp_directory_path() / "kassette_memory_XXXXXX").string();
  if (!mkdtemp(folder.data())) return 2;
  setenv("KERAS_HOME", folder.c_str(), 1);
  setenv("KERAS_BACKEND", "", 1);
  for (const Scenario& s : kScenarios) {
    if (argc > 1 && !std::strstr(s.name, argv[1])) continue;
    warm(s);
    cold(s, false);
    cold(s, true);
  }
  short_of_space();
  std::filesystem::remove_all(folder);
  std::printf("failing_memory: %d wrong\n", wrongs);
  return wrongs ? 1 : 0;
}
