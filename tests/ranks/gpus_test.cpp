// tests/ranks/gpus_test.cpp - what is special if the ranks' tensors are on GPUs.
#include <dlfcn.h>

#include <cstdlib>
#include <limits>

#include "tests/ranks/ranks.h"

namespace kassette::test {
namespace {

bool on_gpus() { return rank_device() != cpu && D::World().size() > 1; }

/// Each rank has a GPU of its own, and NCCL is not turned off.
bool by_nccl() {
  const char* set = std::getenv("KASSETTE_NCCL");
  return on_gpus() && std::string(std::getenv("KASSETTE_RANKS_DEVICE")) == "cuda" && !(set && *set == '0');
}

}  // namespace

TEST_CASE("tensors on the GPU of one rank and on the CPU of another are an error on all ranks", "[ranks][gpus]") {
  if (!on_gpus()) return;
  const D::World world;
  const Tensor x = K::ones({2});
  const std::string got = message_of([&] { D::all_reduce(world.rank() == 1 ? x.to("cpu") : x); });
  CHECK(got.find("rank 0 has all_reduce(sum) of float32 (2,) on a GPU, rank 1 has all_reduce(sum) of float32 (2,);") !=
        std::string::npos);
  CHECK(numbers(D::all_reduce(x)) == std::vector<double>(2, world.size()));
}

TEST_CASE("a world exchanges from one GPU, and another world from another", "[ranks][gpus]") {
  if (!by_nccl()) return;
  const D::World world;
  CHECK(numbers(D::all_reduce(K::ones({2})))[1] == world.size());
  const std::string other = "cuda:" + std::to_string((world.rank() + 1) % world.size());
  const Tensor x = K::ones({2}).to(other);
  const std::string refusal = ": it is on " + other +
                              ", and this world exchanges from cuda:" + std::to_string(world.rank()) +
                              "; another GPU takes a world of its own, by split";
  CHECK(message_of([&] { D::all_reduce(x); }) == "all_reduce(sum) of float32 (2,) on a GPU" + refusal);
  // Fails on one rank; the others must report it too.
  const std::string got = message_of([&] { D::all_gather(world.rank() == 0 ? x : K::ones({2})); });
  CHECK(got.find("cuda:1, and this world exchanges from cuda:0;") != std::string::npos);
  const Tensor sum = D::all_reduce(x, D::sum, world.split(0));
  CHECK(numbers(sum) == std::vector<double>(2, world.size()));
  CHECK(sum.device() == Device(other));
  CHECK(numbers(D::all_reduce(K::ones({2})))[1] == world.size());
}

TEST_CASE("an exchange leaves the current CUDA device of its thread as it was", "[ranks][gpus]") {
  if (!by_nccl()) return;
  const D::World world;
  // Of the emulated device, which the library has opened under that name; on a GPU the runtime is inside of our
  // libraries.
  void* library = dlopen("libkassette_cuda.so", RTLD_NOW | RTLD_NOLOAD);
  auto* context = library ? reinterpret_cast<int (*)()>(dlsym(library, "emulated_context")) : nullptr;
  auto* set_context = library ? reinterpret_cast<void (*)(int)>(dlsym(library, "emulated_set_context")) : nullptr;
  if (!context || !set_context) return;
  for (int before : {-1, (world.rank() + 1) % world.size()}) {
    set_context(before);
    const D::World made = world.split(0);  // with a communicator of its own
    const Tensor x = K::ones({2});
    CHECK(numbers(D::all_reduce(x, D::sum, made)) == std::vector<double>(2, world.size()));
    CHECK((context() == before || (before < 0 && context() == 0)));  // device 0 may stay where none was
  }
}

TEST_CASE("what is computed before and after an exchange on a GPU keeps its order, whoever is late", "[ranks][gpus]") {
  if (!on_gpus()) return;
  const D::World world;
  Tensor x = tensor_of(world.rank(), {50, 40}, float32), expected = tensor_of(0, {50, 40}, float32);
  for (int r = 1; r < world.size(); ++r) expected = expected + tensor_of(r, {50, 40}, float32);
  for (int step = 0; step < 20; ++step) {
    if (step % world.size() == world.rank())
      CHECK(numbers(K::sum(x)).size() == 1);  // this rank waits for its GPU, the others go on
    x = D::all_reduce(x * 2.0, D::mean) - x;  // after the first step all ranks have the same, and 2x - x is x
    if (step == 0) x = D::all_reduce(x, D::mean);
  }
  const std::vector<double> got = numbers(x), sum = numbers(expected);
  for (std::size_t i = 0; i < got.size(); ++i)
    CHECK(got[i] == Approx(sum[i] / world.size()).epsilon(1e-5).margin(1e-5));
}

TEST_CASE("infinities and the largest numbers are extremes of every dtype", "[ranks][gpus]") {
  const D::World world;
  const double inf = std::numeric_limits<double>::infinity(), sign = world.rank() == 0 ? -1 : 1;
  for (DType dtype : {float16, bfloat16, float32, float64}) {
    const double largest = dtype == float16    ? 65504
                           : dtype == bfloat16 ? 0x1.fep127
                           : dtype == float32  ? std::numeric_limits<float>::max()
                                               : std::numeric_limits<double>::max();
    const double smallest = dtype == float16    ? 0x1p-24
                            : dtype == bfloat16 ? 0x1p-133
                            : dtype == float32  ? 0x1p-149
                                                : 0x1p-1074;
    const Tensor x = K::cast(K::constant({sign * inf, sign * largest, sign * smallest}, float64), dtype);
    if (world.size() == 1) continue;
    CHECK(numbers(D::all_reduce(x, D::max)) == std::vector<double>{inf, largest, smallest});
    CHECK(numbers(D::all_reduce(x, D::min)) == std::vector<double>{-inf, -largest, -smallest});
  }
}

}  // namespace kassette::test
