// tests/core/small_blocks_test.cpp - small blocks are reused after they are freed: by lists, by threads that have
// ended, by one thread for another.
#include <kassette/backend.h>

#include <malloc.h>

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "core/context.h"
#include "devices/cpu/allocator.h"
#include "tests/catch.h"

namespace K = kassette::backend;
using kassette::Tensor;
using kassette::Tensors;

namespace {

/// True if each block comes from malloc; then the test is skipped.
bool blocks_are_plain() {
  if (kassette::kAddressSanitizer) kassette::test::skip("the address sanitizer sees every block");
  return kassette::kAddressSanitizer;
}

}  // namespace

TEST_CASE("lists of tensors of every length give their memory back", "[serial]") {
  if (blocks_are_plain()) return;
  Tensor x = K::constant(1.0);
  const auto round = [&] {
    for (int n = 1; n <= 40; ++n) {
      Tensors list;
      for (int i = 0; i < n; ++i) list.push_back(x);
    }
  };
  for (int i = 0; i < 100; ++i) round();
  const std::int64_t reserved = kassette::pool_reserved();
  for (int i = 0; i < 20000; ++i) round();
  CHECK(kassette::pool_reserved() == reserved);
}

TEST_CASE("what one thread makes and another frees is used again") {
  if (blocks_are_plain()) return;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Tensor> handed;
  bool done = false;
  const auto wait_for = [&](bool full) {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [&] { return done || handed.empty() != full; });
    return lock;
  };
  std::thread consumer([&] {
    for (;;) {
      std::vector<Tensor> mine;
      {
        auto lock = wait_for(true);
        if (handed.empty()) return;
        mine.swap(handed);
      }
      changed.notify_all();
    }
  });
  std::int64_t reserved = 0;
  for (int round = 0; round < 400; ++round) {
    if (round == 100) reserved = kassette::pool_reserved();
    std::vector<Tensor> made;
    for (int i = 0; i < 2000; ++i) made.push_back(K::constant(static_cast<double>(i)));
    bool right = true;
    for (int i = 0; i < 2000; ++i) right = right && made[static_cast<std::size_t>(i)].item<double>() == i;
    if (!right) FAIL_CHECK("two tensors share a block");
    auto lock = wait_for(false);
    handed = std::move(made);
    lock.unlock();
    changed.notify_all();
  }
  {
    auto lock = wait_for(false);
    done = true;
  }
  changed.notify_all();
  consumer.join();
  // 600,000 tensors more went through; what is held is bounded by those alive at once.
  CHECK(kassette::pool_reserved() - reserved < (16 << 20));
}

#ifdef __GLIBC__
#if __GLIBC_PREREQ(2, 33)
TEST_CASE("threads that end leave nothing of theirs behind") {
  if (blocks_are_plain()) return;
  const auto run = [](int n) {
    for (int i = 0; i < n; ++i) std::thread([] { K::constant(1.0) + 2.0; }).join();
  };
  run(50);
  const std::size_t before = mallinfo2().uordblks;
  run(500);
  const std::size_t after = mallinfo2().uordblks;
  CHECK(after < before + 500 * sizeof(kassette::Context) / 4);
}
TEST_CASE("memory that the block cache gives back is the system's again") {
  if (blocks_are_plain()) return;
  const auto held = [] { return mallinfo2().uordblks + mallinfo2().hblkhd; };
  const auto round = [] {
    for (std::int64_t bytes : {5000, 100000, 1 << 20, 3 << 20}) {
      void* block = kassette::devices::cpu_memory.allocate(nullptr, bytes);
      REQUIRE(block);
      kassette::devices::cpu_memory.free(nullptr, block, bytes);
    }
  };
  round();
  const std::size_t before = held();
  for (int i = 0; i < 50; ++i) round();
  CHECK(held() < before + (4 << 20));
}
#endif
#endif
