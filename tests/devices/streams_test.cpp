// tests/devices/streams_test.cpp - streams of CUDA devices, pinned memory, copies between devices, which device is
// current for a caller of the library, and numbers that are made on a device.
#include <kassette/backend.h>
#include <kassette/borrow.h>
#include <kassette/dlpack.h>
#include <kassette/error.h>
#include <kassette/runtime.h>
#include <kassette/stream.h>
#include <kassette/testing.h>

#include <cstdlib>
#include <functional>
#include <thread>
#include <utility>

#include "core/impl.h"
#include "devices/cuda/architectures.h"
#include "devices/plugin.h"
#include "tests/catch.h"
#include "tests/devices/devices.h"
#include "tests/environment.h"
#include "tests/results.h"
#include "tests/settings.h"
#include "tests/sources.h"
#include "tests/sweeps/sample.h"

using namespace kassette;
using namespace kassette::devices;
using namespace kassette::test;
namespace K = kassette::backend;

namespace {

const void* place_of(const Tensor& t) { return Access::desc(t).data(); }

}  // namespace

TEST_CASE("what is computed outside of a stream's scope can be used inside, and the other way round", "[device]") {
  if (!has_device("cuda:0")) return;
  Tensor x = K::arange(0, 1000, 1, "float32").to("cuda:0"), before = x + 1, inside, both;
  Stream stream("cuda:0");
  CHECK(stream.native() != current_stream("cuda:0").native());
  {
    StreamScope scope(stream);
    CHECK(current_stream("cuda:0").native() == stream.native());
    inside = before * 2;
    both = K::dot(K::reshape(inside, {10, 100}), K::reshape(before, {100, 10}));
  }
  CHECK(current_stream("cuda:0").native() != stream.native());
  const Tensor on_cpu = (K::arange(0, 1000, 1, "float32") + 1) * 2;
  CHECK(same_bits((inside + 0).to("cpu"), on_cpu));
  CHECK(testing::compare(both.to("cpu"), K::dot(K::reshape(on_cpu, {10, 100}), K::reshape(on_cpu / 2, {100, 10})),
                         {.rtol = 1e-5})
            .ok);
}

TEST_CASE("who gets the memory of a stream that is gone waits for what that stream still does", "[device][cached]") {
  if (!has_device("cuda:0")) return;
  constexpr std::int64_t kSize = 88'888;
  empty_cache("cuda:0");
  Tensor x = K::constant(3, "float32", {kSize}).to("cuda:0"), last, other;
  const void *freed, *got;
  Stream outer("cuda:0");
  {
    StreamScope scope(outer);
    {
      Stream inner("cuda:0");
      StreamScope in_scope(inner);
      freed = place_of(K::square(x));
    }
    std::thread([&] {  // on the device's own stream, which is behind neither
      other = x + 1;
      got = place_of(other);
    })
        .join();
    last = x + 2;
  }
  CHECK(got == freed);
  CHECK(K::max(last).item<float>() == 5);  // everything has run
  CHECK(K::max(other).item<float>() == 4);
}

TEST_CASE("memory that is freed on a stream is used again there, and by others when the stream is gone",
          "[device][cached]") {
  if (!has_device("cuda:0")) return;
  constexpr std::int64_t kSize = 77'777;
  empty_cache("cuda:0");
  const void *inside, *again, *outside;
  {
    Stream stream("cuda:0");
    {
      StreamScope scope(stream);
      DeviceScope here("cuda:0");
      inside = place_of(K::constant(1, "float32", {kSize}));
      again = place_of(K::constant(2, "float32", {kSize}));
    }
    DeviceScope here("cuda:0");
    Tensor other = K::constant(3, "float32", {kSize});
    outside = place_of(other);
    CHECK(again == inside);
    CHECK(outside != inside);
    CHECK(K::max(other).item<float>() == 3);
  }
  DeviceScope here("cuda:0");
  Tensor first = K::constant(4, "float32", {kSize}), second = K::constant(5, "float32", {kSize});
  CHECK((place_of(first) == inside || place_of(second) == inside));
  CHECK(K::max(first).item<float>() == 4);
}

TEST_CASE("threads on streams of their own compute the same", "[device]") {
  if (!has_device("cuda:0")) return;
  const Tensor x = K::arange(0, 5000, 1, "float32").to("cuda:0");
  std::vector<Tensor> results(3);
  std::vector<std::thread> threads;
  for (Tensor& result : results)
    threads.emplace_back([&x, &result] {
      Stream stream("cuda:0");
      StreamScope scope(stream);
      Tensor y = x;
      for (int i = 0; i < 20; ++i) y = y * 0.5 + x;
      result = y;
    });
  for (std::thread& t : threads) t.join();
  Tensor y = x.to("cpu"), on_cpu = y;
  for (int i = 0; i < 20; ++i) y = y * 0.5 + on_cpu;
  for (const Tensor& result : results) CHECK(same_bits(result.to("cpu"), y));
}

TEST_CASE("a stream of somebody else's is one by its handle; the CPU's has nothing to do", "[device]") {
  if (!has_device("cuda:0")) return;
  Stream made("cuda:0");
  Stream theirs("cuda:0", made.native()), own("cuda:0", current_stream("cuda:0").native());
  CHECK(theirs.native() == made.native());
  {
    StreamScope scope(theirs);
    CHECK(floats(K::ones({3}).to("cuda:0") + 1) == std::vector<float>{2, 2, 2});
  }
  own.synchronize();
  made.wait_for(own);
  // A stream in use is never handed out twice, and neither is the default stream.
  void* const handle = made.native();
  {
    Stream again("cuda:0", handle), default_again("cuda:0", own.native());
    theirs = Stream("cuda:0");
    CHECK(theirs.native() != handle);
  }
  Stream next("cuda:0"), after("cuda:0");
  CHECK(next.native() != handle);
  CHECK(after.native() != handle);
  CHECK(next.native() != after.native());
  for (const Stream* s : {&next, &after}) CHECK(s->native() != own.native());
  CHECK(error_of<ValueError>([] { Stream("cuda:0", nullptr); }) ==
        "Stream: a null pointer is no stream of cuda:0; CUDA's legacy default stream is cudaStreamLegacy");
  CHECK(error_of<DeviceError>([] { Stream{Device()}; }) == "Stream: device is None; there are 'cpu' and 'cuda:N'");
  Stream none("cpu");
  StreamScope scope(none);
  none.synchronize();
  none.wait_for(made);
  CHECK(none.native() == nullptr);
}

TEST_CASE("a stream of somebody else's is new if another one is at the address of one that is gone", "[device]") {
  if (!has_device("cuda:0")) return;
  auto make = emulated<void*(int)>("emulated_new_stream");
  auto end = emulated<void(void*)>("emulated_end_stream");
  if (!make) return skip("only the emulated device uses an address again");
  const Tensor x = K::ones({3, 3}).to("cuda:0");
  void* before = nullptr;
  for (int again = 0; again < 3; ++again) {
    void* const native = make(0);
    if (before) REQUIRE(native == before);
    before = native;
    {
      Stream theirs("cuda:0", native);
      StreamScope scope(theirs);
      CHECK(floats(K::dot(x, x)) == std::vector<float>(9, 3));
    }
    synchronize("cuda:0");
    end(native);
  }
}

TEST_CASE("streams of a CUDA device share one handle of cuBLAS", "[device][products]") {
  if (!has_device("cuda:0")) return;
  DeviceScope device("cuda:0");
  auto handles = emulated<std::int64_t()>("emulated_blas_handles");
  const Tensor x = K::ones({3, 3});
  Tensor y = K::dot(x, x), in = K::placeholder({3, 3});
  const std::int64_t before = handles ? handles() : 0;
  Function f = K::function({in}, {K::dot(K::dot(in, in), in)});  // captured on a stream of its own
  Stream one("cuda:0"), other("cuda:0");
  for (int again = 0; again < 4; ++again) {
    for (const Stream* stream : {&one, &other}) {
      StreamScope scope(*stream);
      y = K::dot(f({x})[0], y) / 27;
    }
  }
  CHECK(floats(y) == std::vector<float>(9, 3));
  if (handles) CHECK(handles() == before);
}

TEST_CASE("a pinned tensor is a tensor; a copy of it is made without the host", "[device]") {
  if (!has_device("cuda:0")) return;
  Tensor x = K::arange(0, 3000, 1, "float32"), pinned = pin_memory(x), there;
  CHECK(pinned.device() == cpu);
  CHECK(same_bits(pinned, x));
  CHECK(same_bits(pin_memory(x.to("cuda:0")), x));
  CHECK(pin_memory(K::zeros({0})).shape() == Shape{0});
  there = pinned.to("cuda:0", {.non_blocking = true});
  const void* memory = place_of(pinned);
  pinned = Tensor();  // is kept until the copy has been made
  Tensor next = pin_memory(x * 0 - 1);
  CHECK(place_of(next) != memory);
  CHECK(same_bits(there.to("cpu"), x));
  synchronize("cuda:0");
  // Not pinned: as without.
  CHECK(same_bits(x.to("cuda:0", {.non_blocking = true}).to("cpu", {.non_blocking = true}), x));
  CHECK(error_of<ValueError>([] { pin_memory(Tensor()); }) ==
        "pin_memory: an empty Tensor (a gradient that is None, or an uninitialised variable?)");
  CHECK(error_of<ValueError>([] { pin_memory(K::placeholder({2})); }) ==
        "pin_memory: a symbolic tensor, which has no value");
}

TEST_CASE("pinned memory is free when its copy has been made, whatever other streams have to do", "[device]") {
  if (!has_device("cuda:0")) return;
  auto hold = emulated<void(void*, bool)>("emulated_hold_stream");
  CudaDeviceApi& device = cuda_device_api("cuda:0");
  DeviceStream &slow = device.stream_of(nullptr), &quick = device.stream_of(nullptr), &before = device.current();
  const std::vector<float> from(300, 1);
  void *first = device.allocate(1200), *second = device.allocate(1200);
  bool first_is_made = false, second_is_made = false;
  auto copy_on = [&](DeviceStream& stream, void* to, bool* made) {
    device.set_current(stream);
    device.copy_from_host_later(to, from.data(), 1200, {[](void* flag) { *static_cast<bool*>(flag) = true; }, made});
    device.set_current(before);
  };
  synchronize("cuda:0");
  if (hold) hold(device.native(slow), true);
  copy_on(slow, first, &first_is_made);
  copy_on(quick, second, &second_is_made);
  device.wait(quick);
  CHECK(second_is_made);
  if (hold) CHECK_FALSE(first_is_made);
  if (hold) hold(device.native(slow), false);
  device.wait(slow);
  CHECK(first_is_made);
  for (DeviceStream* stream : {&slow, &quick}) device.close(*stream);
  for (void* block : {first, second}) device.release(block, 1200);
}

TEST_CASE("one number comes from a CUDA device by way of pinned memory", "[device][cached]") {
  if (!has_device("cuda:0")) return;
  auto pageable = emulated<std::int64_t()>("emulated_pageable_copies");
  if (!pageable) return skip("only the emulated device counts");
  const Tensor x = K::constant({{1, 2}, {3, 4}}).to("cuda:0"), wrong = K::constant({7}, "int32").to("cuda:0");
  const std::int64_t before = pageable();
  for (int again = 0; again < 3; ++again) {
    CHECK(K::max(x).item<float>() == 4);
    const Tensor y = K::gather(x, wrong);
    CHECK_THROWS_AS(K::max(x).item<float>(), ValueError);  // that of gather
  }
  CHECK(pageable() == before);
}

TEST_CASE("the host's elements may change when a copy to a device has returned", "[device]") {
  if (!has_device("cuda:0")) return;
  std::vector<float> memory(3000, 1);
  Tensor there = borrow(memory, [] {}).to("cuda:0");
  std::fill(memory.begin(), memory.end(), 2.f);
  CHECK(floats(there) == std::vector<float>(3000, 1));
}

TEST_CASE("a tensor goes from one device to another", "[device]") {
  if (!has_device("cuda:2")) return;
  Tensor x = K::arange(0, 3000, 1, "float32"), here = x.to("cuda:0") + 1, near = here.to("cuda:1"),
         far = here.to("cuda:2");
  here = Tensor();
  Tensor over = K::zeros({3000}).to("cuda:0") - 1;  // may lie where `here` was
  CHECK(near.device() == Device("cuda:1"));
  CHECK(same_bits((near * 2).to("cpu"), (x + 1) * 2));
  CHECK(same_bits(far.to("cuda:0").to("cpu"), x + 1));
  if (auto* questions = emulated<std::int64_t()>("emulated_peer_questions")) {
    const std::int64_t asked = questions();
    CHECK(floats(far.to("cuda:0").to("cuda:1").to("cuda:2"))[7] == 8);
    CHECK(floats(far.to("cuda:0").to("cuda:1"))[7] == 8);
    CHECK(questions() - asked <= 2);  // once for each pair
  }
  CHECK(floats(over)[7] == -1);
  for (int again = 0; again < 8; ++again) {  // the emulated device draws which stream is ahead
    here = x.to("cuda:0") + 1;
    near = here.to("cuda:1");
    here = Tensor();
    over = x.to("cuda:0");
    CHECK(floats(over)[7] == 7);
    CHECK(same_bits(near.to("cpu"), x + 1));
  }
}

TEST_CASE("the device that was current in a thread still is after calls of ours", "[device]") {
  if (!has_device("cuda:2")) return;
  auto context = emulated<int()>("emulated_context");
  auto set_context = emulated<void(int)>("emulated_set_context");
  if (!context) return skip("only the emulated device tells what is current");
  for (int before : {-1, 5, 0}) {
    set_context(before);
    // Where none was, that of cuda:0 may stay, which the runtime would set itself.
    auto kept = [&] { return context() == before || (before < 0 && context() == 0); };
    Tensor x = K::ones({2, 2}).to("cuda:1"), y = K::dot(x, x) + 1;
    CHECK(kept());
    CHECK(floats(y.to("cuda:2") * 2) == std::vector<float>{6, 6, 6, 6});
    CHECK(floats(pin_memory(K::ones({2000})).to("cuda:1", {.non_blocking = true}))[1999] == 1);
    {
      Stream stream("cuda:1");
      StreamScope scope(stream);
      y = x + y;
    }
    empty_cache("cuda:1");
    synchronize("cuda:1");
    { MemoryLimit none(0, "cuda:1"); }
    CHECK_THROWS_AS(x.to("cuda:99"), DeviceError);
    CHECK(kept());
  }
  set_context(-1);
}

TEST_CASE("an op on a CUDA device asks the driver once for each launch which device is current", "[device][cached]") {
  if (!has_device("cuda:1")) return;
  auto calls = emulated<std::int64_t()>("emulated_context_calls");
  auto set_context = emulated<void(int)>("emulated_set_context");
  auto launches = emulated<std::int64_t()>("emulated_enqueued");
  if (!calls) return skip("only the emulated device counts");
  for (const char* device : {"cuda:0", "cuda:1"}) {
    const bool first = device == std::string("cuda:0");
    const Tensor x = K::ones({4, 4}).to(device);
    const std::pair<const char*, std::function<Tensor()>> ops[] = {{"add", [&] { return x + x; }},
                                                                   {"relu", [&] { return K::relu(x); }},
                                                                   {"sum", [&] { return K::sum(x); }},
                                                                   {"dot", [&] { return K::dot(x, x); }},
                                                                   {"softmax", [&] { return K::softmax(x); }}};
    for (const auto& [name, op] : ops) {
      INFO(name << " on " << device);
      for (int before : {-1, first ? 0 : 1}) {
        op();  // there is memory for it from now on
        set_context(before);
        if (first) op();  // and its context stays
        const std::int64_t asked = calls(), enqueued = launches();
        op();
        CHECK(launches() - enqueued == 1);
        // Where none was, a context other than that of device 0 is set and taken away.
        CHECK(calls() - asked == (first || before >= 0 ? 1 : 3));
      }
    }
    set_context(-1);
  }
}

TEST_CASE("a device keeps the memory that steps free", "[device][cached]") {
  if (!has_device("cuda:0")) return;
  auto frees = emulated<std::int64_t()>("emulated_frees");
  if (!frees) return skip("only the emulated device counts");
  DeviceScope here("cuda:0");
  // Blocks of the CPU beyond 64 MiB would go back when others are wanted.
  Tensor big = K::constant(1, "float32", {40'000'000});
  big = Tensor();
  const std::int64_t before = frees();
  for (std::int64_t n : {1000, 30'000'000, 5'000'000, 70'000, 20'000'000}) K::constant(1, "float32", {n});
  CHECK(frees() == before);
  empty_cache("cuda:0");
  CHECK(frees() > before);
}

TEST_CASE("numbers, zeros, ones, ranges and identity matrices are made on a device without a copy from the host",
          "[device]") {
  if (!has_device("cuda:0")) return;
  auto copies = emulated<std::int64_t()>("emulated_host_copies");
  auto made = [] {
    Tensor w = K::variable(2), v = K::variable(K::zeros({2, 3})), x = K::ones({2, 3});
    K::update(w, 0.5);
    K::update_add(w, 3);
    return Tensors{w,
                   v,
                   x,
                   K::zeros({5}, "int8"),
                   K::ones({0, 2}),
                   K::ones({3}, "float64"),
                   K::constant(7, "int64", {4, 2}),
                   K::constant(-1.5),
                   K::zeros_like(x),
                   K::ones_like(v, "bfloat16"),
                   2.5 * x + 1.75,
                   K::maximum(x * 3, 2),
                   K::eye(3),
                   K::eye({2, 5}, "int16"),
                   K::arange(7),
                   K::arange(1.5, -2, -0.5)};
  };
  Tensors wanted = made(), got;
  {
    DeviceScope here("cuda:0");
    const std::int64_t before = copies ? copies() : 0;
    got = made();
    if (copies) CHECK(copies() == before);
  }
  check_same_on("cuda:0", got, wanted);
}

TEST_CASE("a variable of a device takes numbers and scalars of the CPU", "[device]") {
  if (!has_device("cuda:0")) return;
  Tensor w = K::variable(K::constant(2).to("cuda:0"));
  K::update(w, 0.5);
  CHECK(w.device() == Device("cuda:0"));
  CHECK(w.item<float>() == 0.5f);
  K::update_add(w, K::constant(1));
  K::update_sub(w, 0.25);
  CHECK(w.item<float>() == 1.25f);
  CHECK(error_of<DeviceError>([&] { K::update(K::variable(K::ones({2}).to("cuda:0")), K::ones({2})); }) ==
        "update: the variable is on cuda:0, the value on cpu");
}

TEST_CASE("an exported tensor is there on the consumer's stream, and its memory stays until that has read it",
          "[device]") {
  if (!has_device("cuda:0")) return;
  constexpr std::int64_t kSize = 33'333;
  DeviceScope here("cuda:0");
  Stream theirs("cuda:0");
  Tensor x = K::constant(1, "float32", {kSize}) + 1;
  auto* given = to_dlpack(x, theirs.native());
  x = Tensor();
  Tensor read;
  {
    // What a consumer does: a kernel of its own on its own stream, which ends some time.
    Tensor seen = from_dlpack(given);
    StreamScope scope(theirs);
    read = seen + 1;
  }
  CHECK(floats(read) == std::vector<float>(kSize, 3));
  auto* unknown = to_dlpack(K::constant(4, "float32", {2}) * 2);
  CHECK(floats(from_dlpack(unknown)) == std::vector<float>{8, 8});
}

TEST_CASE(
    "a consumer's stream is behind ours when it gets an exported tensor, and ours behind it when the memory comes back",
    "[device][cached]") {
  if (!has_device("cuda:0")) return;
  constexpr std::int64_t kSize = 55'555;
  auto on_our_stream = [](auto f) {
    std::thread([&] {
      DeviceScope scope("cuda:0");
      f();
    }).join();
  };
  Stream theirs("cuda:0");
  StreamScope scope(theirs);
  for (int again = 0; again < 8; ++again) {  // the emulated device draws which stream is ahead
    dlpack::DLManagedTensor* given = nullptr;
    on_our_stream([&] { given = to_dlpack(K::constant(1, "float32", {kSize}) + 1, theirs.native()); });
    TensorDesc seen;  // what the consumer has: an address, which keeps nothing alive
    seen.set(TensorSpec(float32, {kSize}));
    seen.device = "cuda:0";
    seen.storage = Storage::borrow(given->dl_tensor.data, seen.bytes(), {[](void*) {}, nullptr});
    seen.storage->device = seen.device;
    const void *memory = seen.data(), *reused = nullptr;
    const Tensor read = Access::wrap(std::move(seen)) + 1;
    on_our_stream([&] {
      given->deleter(given);
      Tensor other = K::constant(7, "float32", {kSize});
      reused = place_of(other);
      current_stream("cuda:0").synchronize();
    });
    CHECK(reused == memory);
    CHECK(floats(read) == std::vector<float>(kSize, 3));
  }
}

TEST_CASE("TF32 is used by products of float32 where it is allowed", "[device]") {
  if (!has_device("cuda:0")) return;
  CHECK_FALSE(allow_tf32());
  Tensor x = K::ones({4, 4}).to("cuda:0");
  auto count = emulated<std::int64_t()>("emulated_tf32_products");
  const std::int64_t before = count ? count() : 0;
  K::dot(x, x);
  if (count) CHECK(count() == before);
  SettingsScope restore;
  set_allow_tf32(true);
  CHECK(allow_tf32());
  Tensor y = K::dot(x, x), wide = K::cast(x, "float64");
  K::dot(wide, wide);
  set_allow_tf32(false);
  if (count) CHECK(count() == before + 1);
  CHECK(floats(y) == std::vector<float>(16, 4));
}

TEST_CASE("devices are counted and named", "[device]") {
  if (!has_device("cuda:0")) return;
  CHECK(device_count() >= 1);
  CHECK(std::string(device_name("cuda:0")).size() > 2);
  CHECK(device_name("cuda:0") == device_name("cuda:0"));
  CHECK(std::string(device_name("cpu")) == "cpu");
  CHECK(error_of<DeviceError>([] { device_name("cuda:250"); }).rfind("cuda:250 is not available: there ", 0) == 0);
  CHECK(error_of<DeviceError>([] { synchronize("cuda:250"); }).rfind("cuda:250 is not available: there ", 0) == 0);
}

TEST_CASE("a device that the library has no code for is refused when it is opened", "[device]") {
  using cuda::has_code_for;
  const char* release = "80-real,86-real,89-real,90-real,100-real,120";
  // CUDA C++ Programming Guide, section "Application Compatibility".
  CHECK(has_code_for(release, 8, 0));
  CHECK(has_code_for(release, 8, 7));
  CHECK(has_code_for(release, 10, 3));
  CHECK_FALSE(has_code_for(release, 11, 0));
  CHECK(has_code_for(release, 12, 1));
  CHECK(has_code_for(release, 13, 0));  // PTX
  CHECK_FALSE(has_code_for(release, 7, 5));
  CHECK_FALSE(has_code_for("86-real", 8, 0));
  CHECK_FALSE(has_code_for("86-real", 9, 0));
  CHECK(has_code_for("86-real", 8, 9));
  CHECK(has_code_for("86-virtual", 9, 0));
  CHECK_FALSE(has_code_for("90a-real", 9, 1));
  CHECK(has_code_for("90a-real", 9, 0));
  CHECK(has_code_for("100f-real", 10, 3));
  CHECK_FALSE(has_code_for("100f", 12, 0));
  CHECK_FALSE(has_code_for("90a-virtual", 10, 0));
  CHECK(has_code_for("native", 7, 0));
  if (!emulated<int()>("emulated_context")) return;
  const Environment older("EMULATED_CUDA_CAPABILITY", "75");
  CHECK(error_of<DeviceError>([] { K::ones({2}).to("cuda:6"); }) ==  // which no other test opens
        "cuda:6 is not available: its compute capability is 7.5, and this library has code for 80-virtual");
}
