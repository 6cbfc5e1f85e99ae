// tests/ranks/mismatch_test.cpp - calls that differ between ranks: they throw one error on every rank, and the world
// can still be used.
#include <kassette/interrupt.h>
#include <sys/resource.h>

#include <fstream>
#include <functional>
#include <random>

#include "tests/ranks/ranks.h"

namespace kassette::test {
namespace {

void check_world_works() {
  const D::World world;
  CHECK(numbers(D::all_reduce(K::constant(1, int32)))[0] == world.size());
}

/// While it lives, this process can allocate at most `more` further bytes: on the GPU that holds its tensors, or of
/// address space.
class ShortOfMemory {
 public:
  explicit ShortOfMemory(rlim_t more) {
    if (device_ != cpu) {
      set_memory_limit(memory_stats(device_).live + static_cast<std::int64_t>(more), device_);
      return;
    }
    rlim_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    getrlimit(RLIMIT_AS, &before_);
    rlimit low = before_;
    low.rlim_cur = pages * 4096 + more;
    setrlimit(RLIMIT_AS, &low);
  }
  ~ShortOfMemory() {
    if (device_ != cpu) set_memory_limit(0, device_);
    else setrlimit(RLIMIT_AS, &before_);
  }
  ShortOfMemory(const ShortOfMemory&) = delete;
  ShortOfMemory& operator=(const ShortOfMemory&) = delete;

 private:
  const Device device_ = rank_device();
  rlimit before_{};
};

}  // namespace

TEST_CASE("calls that differ are an error on every rank that says how", "[ranks][mismatch]") {
  const D::World world;
  if (world.size() == 1) return;
  const bool odd = world.rank() == 1;
  const Tensor x = K::zeros({2, 3});
  auto check = [&](const char* mine, const char* theirs, auto one, auto other) {
    const std::string got = message_of([&] { odd ? other() : one(); });
    const char* where = rank_device() == cpu ? "" : " on a GPU";
    const auto words = [&](const char* call) {
      return std::string(call) + (std::string(call) == "barrier" ? "" : where);
    };
    INFO(got);
    CHECK(got.find("the ranks' calls differ: rank 0 has " + words(mine) + ", rank 1 has " + words(theirs) +
                   "; all ranks must make the same calls in the same order") != std::string::npos);
    check_world_works();
  };
  check(
      "all_reduce(sum) of float32 (2, 3)", "all_reduce(sum) of float32 (3, 2)", [&] { D::all_reduce(x); },
      [&] {
        D::all_reduce(K::zeros({3, 2}));
      });
  check(
      "all_reduce(sum) of float32 (2, 3)", "all_reduce(sum) of float64 (2, 3)", [&] { D::all_reduce(x); },
      [&] {
        D::all_reduce(K::zeros({2, 3}, "float64"));
      });
  check(
      "all_reduce(sum) of float32 (2, 3)", "all_reduce(max) of float32 (2, 3)", [&] { D::all_reduce(x); },
      [&] { D::all_reduce(x, D::max); });
  check(
      "all_reduce(sum) of float32 (2, 3)", "all_gather of float32 (2, 3)", [&] { D::all_reduce(x); },
      [&] { D::all_gather(x); });
  check(
      "all_gather of float32 (2, 3)", "all_gather of float32 (2, 4)", [&] { D::all_gather(x); },
      [&] {
        D::all_gather(K::zeros({2, 4}));
      });
  check(
      "broadcast from rank 0 of float32 (2, 3)", "broadcast from rank 1 of float32 (2, 3)", [&] { D::broadcast(x, 0); },
      [&] { D::broadcast(x, 1); });
  check(
      "all_reduce(sum) of float32 (2, 3)", "all_reduce(sum) of float32 (2, 3), float32 (2, 3)",
      [&] { D::all_reduce(x); },
      [&] {
        D::all_reduce({x, x});
      });
  check(
      "barrier", "reduce_scatter(mean) of float32 (2, 3)", [&] { world.barrier(); },
      [&] { D::reduce_scatter(x, D::mean); });
}

TEST_CASE("what one rank refuses is an error on the others too", "[ranks][mismatch]") {
  const D::World world;
  if (world.size() == 1) return;
  const bool odd = world.rank() == 1;
  std::string got = message_of([&] { odd ? D::all_reduce(Tensor()) : D::all_reduce(K::zeros({2})); });
  if (odd) CHECK(got == "all_reduce: xs hold an empty Tensor (a gradient that is None, or an uninitialised variable?)");
  else CHECK(got.find("rank 1 has an error: all_reduce: xs hold an empty Tensor") != std::string::npos);
  check_world_works();
  got = message_of([&] { odd ? D::all_reduce(K::equal(K::zeros({2}), 0)) : D::all_reduce(K::zeros({2})); });
  CHECK(got.find("all_reduce: the sum of bool") != std::string::npos);
  check_world_works();
  // On all ranks alike nobody is told twice.
  CHECK(message_of([&] { D::all_reduce(K::equal(K::zeros({2}), 0)); }).find("all_reduce: the sum of bool") == 0);
  check_world_works();
}

TEST_CASE("memory that one rank lacks is an error on the others too", "[ranks][mismatch]") {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  const D::World world;
  if (world.size() == 1) return;
  // Of a GPU less will do: its limit leaves out what the process takes otherwise.
  const std::int64_t size = world.size(), elements = std::int64_t(48) << (rank_device() == cpu ? 20 : 14);
  const Tensor x = K::zeros({size, elements / size}), constant = x + 0,
               half = K::zeros({size, elements / size}, "float16");
  const Tensor in = K::placeholder(x.shape());
  const auto summed = K::function({in}, {D::all_reduce(in)});
  using Run = std::function<Tensor()>;
  for (const Run& run : {Run([&] { return D::all_reduce(x); }), Run([&] {
                           return D::all_reduce({half, half})[1];
                         }),
                         Run([&] { return D::broadcast(constant); }), Run([&] { return D::reduce_scatter(half); }),
                         Run([&] { return D::all_gather(x); }), Run([&] { return D::all_to_all(x); }),
                         Run([&] { return summed({x})[0]; })}) {
    const std::string got = message_of([&] {
      if (world.rank() != 1) {
        run();
        return;
      }
      const ShortOfMemory low(static_cast<rlim_t>(elements) * 30 / 48);
      run();
    });
    INFO("rank " << world.rank() << ": " << got);
    CHECK(got != "");
    check_world_works();
  }
#endif
}

TEST_CASE("what one rank refuses in D::gradients is an error on the others too, at any call", "[ranks][mismatch]") {
  const D::World world;
  if (world.size() == 1) return;
  const bool odd = world.rank() == 1;
  const Tensor v = K::variable(K::ones({3})), loss = K::sum(v * v);
  const Tensors expected = D::all_reduce(Tensors{2.0 * v});
  for (int call = 0; call < 3; ++call) {
    CHECK(numbers(D::gradients(loss, {v})[0]) == numbers(expected[0]));
    std::string got = message_of([&] { D::gradients(odd ? Tensor() : loss, {v}); });
    if (odd) CHECK(got.find("gradients: loss is an empty Tensor") == 0);
    else CHECK(got.find("rank 1 has an error: gradients: loss is an empty Tensor") != std::string::npos);
    check_world_works();
    got = message_of([&] { D::gradients(loss, odd ? Tensors{v, K::constant({1., 2.})} : Tensors{v}); });
    if (odd) CHECK(got.find("gradients: variable 1") == 0);
    else CHECK(got.find("rank 1 has an error: gradients: variable 1") != std::string::npos);
    check_world_works();
    got = message_of([&] { odd ? D::gradients(loss, {v}, D::max) : D::gradients(loss, {v}); });
    CHECK(got.find("gradients: how is max") != std::string::npos);
    check_world_works();
    // Another call beside it.
    got = message_of([&] { odd ? D::all_gather(v)[0] : D::gradients(loss, {v})[0]; });
    CHECK(got.find("the ranks' calls differ: rank 0 has ") != std::string::npos);
    check_world_works();
  }
}

TEST_CASE("a pass or function that one rank leaves between two exchanges is an error on the others too",
          "[ranks][mismatch]") {
  const D::World world;
  if (world.size() == 1) return;
  constexpr int kLayers = 4, kUnits = 40;
  Tensors w;
  for (int i = 0; i < kLayers; ++i) w.push_back(variable(smooth(i, {kUnits, kUnits}) * 0.05));
  const Tensor x = smooth(world.rank(), {kUnits, kUnits}), fed = K::placeholder(x.shape(), None, float64);
  auto loss = [&](Tensor h) {
    for (const Tensor& layer : w) h = K::tanh(K::dot(h, layer));
    return K::sum(h);
  };
  D::GradientOptions each;
  each.bucket_bytes = 0;
  const Function gradients = K::function({fed}, D::gradients(loss(fed), w, D::sum, each)),
                 twice = K::function({fed}, {D::all_reduce(K::sin(D::all_gather(K::cos(fed * 2.0))) * 2.0)});
  const Tensor kept = loss(x);
  using Run = std::function<Tensor()>;
  for (const Run& run : {Run([&] { return D::gradients(kept, w, D::sum, each)[kLayers - 1]; }),
                         Run([&] { return gradients({x})[kLayers - 1]; }), Run([&] { return twice({x})[0]; })}) {
    const std::vector<double> expected = numbers(run());
    int failed = 0;
    // Rank 1 has memory for more and more of it, then is interrupted.
    for (int budget = 0; budget <= 40; ++budget) {
      const bool interrupted = budget == 40;
      if (world.rank() == 1) {
        if (interrupted) request_interrupt(Whose::this_thread);
        empty_cache(rank_device());
        if (!interrupted) set_memory_limit(memory_stats(rank_device()).live + 13000 * budget, rank_device());
      }
      bool threw = false;
      try {
        run();
      } catch (const std::exception&) {
        threw = true;
      }
      set_memory_limit(0, rank_device());
      cancel_interrupt();
      failed += threw;
      // On all ranks or on none, after which the next call is right.
      INFO("budget " << budget);
      CHECK(numbers(D::all_reduce(K::constant(threw ? 1 : 0, int32)))[0] == (threw ? world.size() : 0));
      CHECK(numbers(run()) == expected);
    }
    CHECK(failed > 3);
  }
}

TEST_CASE("random sequences of collectives, with wrong ones among them, never hang", "[ranks][mismatch][random]") {
  const D::World world;
  std::mt19937 shared(17);  // the same draws on all ranks
  auto draw = [&](int n) { return static_cast<int>(shared() % static_cast<unsigned>(n)); };
  constexpr DType kDtypes[] = {float16, float32, float64, int32, int64, uint8};
  int errors = 0;
  for (int i = 0; i < 2000; ++i) {
    const int op = draw(6), rows = draw(5), columns = draw(4), how = draw(5), root = draw(world.size());
    const DType dtype = kDtypes[draw(6)];
    const bool wrong = world.size() > 1 && draw(8) == 0;
    const int liar = draw(world.size()), lie = draw(3);
    const bool mine = wrong && liar == world.rank();
    const DType sent = mine && lie == 0 ? (dtype == float32 ? float64 : float32) : dtype;
    const int width = mine && lie == 1 ? columns + 1 : columns, called = mine && lie == 2 ? (op + 1) % 6 : op;
    const std::int64_t n = op == 4 ? std::int64_t(rows) * world.size() : rows;
    const Tensor x = tensor_of(world.rank(), {n, width}, sent);
    auto reduction = static_cast<D::Reduction>(how == 1 && !dtype.is_float() ? 0 : how);
    auto call = [&]() -> std::vector<double> {
      switch (called) {
        case 0: return numbers(D::all_reduce(x, reduction));
        case 1: return numbers(D::broadcast(x, root));
        case 2: return numbers(D::all_gather(x));
        case 3: return numbers(D::reduce_scatter(x));
        case 4: return numbers(D::all_to_all(x));
        default: {
          const Tensors both = D::all_reduce({x, x});
          return numbers(both[1]);
        }
      }
    };
    const std::string message = message_of(call);
    INFO("call " << i << ": " << message);
    CHECK((message.empty() != wrong || world.size() == 1));
    errors += !message.empty();
  }
  check_world_works();
  if (world.size() > 1) CHECK(errors > 100);
}

}  // namespace kassette::test
