// tests/listener.h - the listener of a test program: a seed for each test case, which depends neither on the filter nor
// on the tests before it.
#pragma once
#include <cstdint>
#include <string>

#include "tests/catch.h"
#include "tests/seed.h"

namespace kassette::test {

#if KASSETTE_CATCH2 >= 3
using ListenerBase = Catch::EventListenerBase;
#else
using ListenerBase = Catch::TestEventListenerBase;
#endif

/// Calls `seed` at the start of a test case, and again for each of its sections, since these begin it anew.
template <void (*seed)(std::uint64_t)>
class SeedingListener : public ListenerBase {
 public:
  using ListenerBase::ListenerBase;

  void testCaseStarting(const Catch::TestCaseInfo& info) override {
    ListenerBase::testCaseStarting(info);
    name_ = info.name;
  }
  void sectionStarting(const Catch::SectionInfo& info) override {
    ListenerBase::sectionStarting(info);
    if (depth_++ == 0) seed(seed_of(name_));
  }
  void sectionEnded(const Catch::SectionStats& stats) override {
    ListenerBase::sectionEnded(stats);
    --depth_;
  }

 protected:
  const std::string& name() const { return name_; }  // of the test case

 private:
  std::string name_;
  int depth_ = 0;
};

}  // namespace kassette::test
