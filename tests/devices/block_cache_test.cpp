// tests/devices/block_cache_test.cpp - the caching allocator: size classes, limits, statistics, threads and fork.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include <kassette/backend.h>
#include <kassette/error.h>
#include <kassette/runtime.h>

#include "core/storage.h"
#include "devices/block_cache.h"
#include "devices/bytes_text.h"
#include "devices/cpu/allocator.h"
#include "tests/catch.h"
#include "tests/devices/devices.h"
#include "tests/environment.h"
#include "tests/results.h"

using namespace kassette;
using namespace kassette::devices;

namespace {

constexpr bool kCaches = !kAddressSanitizer;

/// A cache that lives for ever, as they all do.
BlockCache& fresh_cache() { return *new BlockCache(cpu, cpu_memory); }

}  // namespace

TEST_CASE("size classes lose at most an eighth and never shrink a block", "[memory]") {
  for (std::int64_t bytes :
       {1, 511, 512, 513, 4096, 4097, 5000, 8192, 8193, 65535, 1 << 20, (1 << 20) + 1, 40'000'000}) {
    std::int64_t whole = BlockCache::class_bytes(bytes);
    CHECK(whole >= bytes);
    CHECK(whole <= std::max<std::int64_t>(512, bytes + bytes / 8 + 512));
    CHECK(BlockCache::class_bytes(whole) == whole);
    CHECK(whole % 512 == 0);
  }
}

TEST_CASE("blocks are aligned, writable and do not overlap", "[memory]") {
  BlockCache& cache = fresh_cache();
  std::vector<std::pair<void*, std::int64_t>> blocks;
  for (std::int64_t bytes : {5000, 5000, 100'000, 3'000'000, 3'000'000, 2 << 20, (2 << 20) + 1}) {
    void* p = cache.allocate(bytes);
    CHECK(reinterpret_cast<std::uintptr_t>(p) % 64 == 0);
    std::memset(p, static_cast<int>(blocks.size()), static_cast<std::size_t>(bytes));
    blocks.emplace_back(p, bytes);
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    auto* p = static_cast<unsigned char*>(blocks[i].first);
    CHECK(p[0] == i);
    CHECK(p[blocks[i].second - 1] == i);
    cache.release(p, blocks[i].second);
  }
  CHECK(cache.stats().live == 0);
  cache.trim();
  CHECK(cache.stats().cached == 0);
}

TEST_CASE("a freed block is the next one handed out, also for other sizes of its class", "[memory]") {
  if (!kCaches) return test::skip("under the address sanitizer nothing is cached");
  BlockCache& cache = fresh_cache();
  void* a = cache.allocate(100'000);
  void* b = cache.allocate(100'000);
  cache.release(a, 100'000);
  cache.release(b, 100'000);
  CHECK(cache.allocate(99'999) == b);
  CHECK(cache.allocate(100'001) == a);
  CHECK(cache.stats().allocations == 2);
  CHECK(cache.stats().cached == 0);
  CHECK(cache.stats().live == 2 * BlockCache::class_bytes(100'000));
  CHECK(cache.stats().peak == cache.stats().live);
  cache.release(a, 100'001);
  cache.reset_peak();
  CHECK(cache.stats().peak == BlockCache::class_bytes(100'000));
}

TEST_CASE("what is cached is bounded by the peak of what was live", "[memory]") {
  BlockCache& cache = fresh_cache();
  constexpr std::int64_t kMiB = 1 << 20;
  for (std::int64_t size = 16; size <= 400; size += 16) cache.release(cache.allocate(size * kMiB), size * kMiB);
  CHECK(cache.stats().live + cache.stats().cached <= cache.stats().peak * 9 / 8);
  cache.trim();
}

TEST_CASE("phases that want blocks of other sizes do not add up", "[memory]") {
  BlockCache& cache = fresh_cache();
  constexpr std::int64_t kMiB = 1 << 20, kPeak = 160 * kMiB;
  for (std::int64_t size : {kMiB, kMiB / 4, 3 * kMiB / 2, kMiB / 2}) {
    std::vector<void*> blocks;
    for (std::int64_t n = 0; n + size <= kPeak; n += size) {
      blocks.push_back(cache.allocate(size));
      CHECK(cache.stats().live + cache.stats().cached <= kPeak + kPeak / 8 + size);
    }
    for (void* b : blocks) cache.release(b, size);
  }
  cache.trim();
}

TEST_CASE("a limit turns cached blocks out first, then throws in one line", "[memory]") {
  BlockCache& cache = fresh_cache();
  cache.set_limit(1 << 20);
  void* a = cache.allocate(512 << 10);
  cache.release(a, 512 << 10);
  void* b = cache.allocate(768 << 10);
  CHECK(cache.stats().cached == 0);
  CHECK_THROWS_AS(cache.allocate(512 << 10), MemoryError);
  CHECK_THROWS_WITH(
      cache.allocate(512 << 10),
      "out of memory on cpu: 512.0 KiB asked for, 768.0 KiB held by tensors, 0 bytes cached, limit 1.0 MiB (set_memory_limit)");
  cache.release(b, 768 << 10);
  CHECK_NOTHROW(cache.release(cache.allocate(512 << 10), 512 << 10));
  cache.trim();
}

TEST_CASE("more than the system has is a MemoryError that says so", "[memory]") {
  BlockCache& cache = fresh_cache();
  CHECK_THROWS_WITH(
      cache.allocate(std::int64_t(1) << 50),
      "out of memory on cpu: 1.0 PiB asked for, 0 bytes held by tensors, 0 bytes cached, and the system gives no more");
  CHECK(cache.stats().live == 0);
}

TEST_CASE("a block may be freed by another thread, and a fork in the middle does not hang", "[memory]") {
  BlockCache& cache = fresh_cache();
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop) cache.release(cache.allocate(10'000), 10'000);
  });
  for (int i = 0; i < 20; ++i) {
    pid_t child = fork();
    if (child == 0) {
      cache.release(cache.allocate(10'000), 10'000);
      _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    CHECK(status == 0);
  }
  stop = true;
  busy.join();
  void* p = cache.allocate(20'000);
  std::thread([&] { cache.release(p, 20'000); }).join();
  CHECK(cache.stats().live == 0);
  cache.trim();
}

TEST_CASE("the runtime header reports memory", "[memory]") {
  MemoryStats before = memory_stats();
  {
    Ref<Storage> s = Storage::allocate(1 << 20, cpu);
    CHECK(memory_stats().live == before.live + (1 << 20));
  }
  CHECK(memory_stats().live == before.live);
  CHECK_THROWS_WITH(set_memory_limit(-1), "set_memory_limit: bytes is -1; it must not be negative, and 0 is no limit");
  empty_cache();
  CHECK(memory_stats().cached == 0);
  CHECK(test::printed(MemoryStats{1024, 0, 2048, 0, 3}) ==
        "1.0 KiB live, 0 bytes cached, peak 2.0 KiB, no limit, 3 blocks taken from the system");
  CHECK(bytes_text(512) == "512 bytes");
  CHECK(bytes_text(3 << 19) == "1.5 MiB");
}

TEST_CASE("what is kept free shrinks to the peak since reset_peak at the next release", "[memory]") {
  if (!kCaches) return;
  BlockCache& cache = fresh_cache();
  const std::int64_t large = std::int64_t(200) << 20, small = 1 << 20;
  void *a = cache.allocate(large), *b = cache.allocate(small);
  cache.release(a, large);
  CHECK(cache.stats().cached >= large);
  cache.reset_peak();
  cache.release(b, small);
  CHECK(cache.stats().live == 0);
  CHECK(cache.stats().cached <= 64 << 20);  // what is always kept
}

TEST_CASE("with KASSETTE_CUDA_CACHE=0 a block of a CUDA device goes back when it is freed", "[memory]") {
  auto cached = [](Device device) {
    BlockCache& cache = *new BlockCache(device, cpu_memory);
    cache.release(cache.allocate(100'000), 100'000);
    return cache.stats().cached > 0;
  };
  test::Environment off("KASSETTE_CUDA_CACHE", "0");
  CHECK(!cached(Device("cuda:7")));
  CHECK(cached(cpu) == kCaches);
  test::Environment on("KASSETTE_CUDA_CACHE", "1");
  CHECK(cached(Device("cuda:7")) == kCaches);
}

TEST_CASE("with KASSETTE_CUDA_CACHE=0 a block of a CUDA device is as long as was asked for", "[memory]") {
  auto live = [](Device device) {
    BlockCache& cache = *new BlockCache(device, cpu_memory);
    void *a = cache.allocate(20), *b = cache.allocate(40);  // of one class
    cache.release(a, 20);
    const std::int64_t bytes = cache.stats().live;
    cache.release(b, 40);
    CHECK(cache.stats().live == 0);
    return bytes;
  };
  test::Environment off("KASSETTE_CUDA_CACHE", "0");
  CHECK(live(Device("cuda:7")) == 40);
  CHECK(live(cpu) == 512);
}

TEST_CASE("with KASSETTE_CUDA_CACHE=0 a device keeps nothing that was freed", "[memory][device]") {
  test::Environment off("KASSETTE_CUDA_CACHE", "0");  // read when a device is first used, as cuda:7 is here
  if (!test::has_device("cuda:7")) return;
  auto current = test::emulated<int()>("emulated_context");
  const int before = current ? current() : 0;
  {
    DeviceScope scope("cuda:7");
    Tensor x = backend::ones({100, 100}), y = backend::dot(x, x) + x;
    CHECK(test::number(backend::sum(y)) == 1010000);
  }
  CHECK(memory_stats("cuda:7").cached == 0);
  CHECK(memory_stats("cuda:7").allocations > 3);
  if (current) CHECK((current() == before || (before < 0 && current() == 0)));  // device 0 may stay where none was
}
