// tests/devices/registry_test.cpp - devices by name: what is absent, and one program on every device there is.
#include <string>

#include <kassette/backend.h>
#include <kassette/error.h>

#include "core/storage.h"
#include "tests/catch.h"
#include "tests/devices/devices.h"

using namespace kassette;
namespace K = kassette::backend;

TEST_CASE("a device that is absent is an error with the reason in one line, and the CPU goes on", "[devices][device]") {
  Device far(Device::kCuda, 200);
  const char* why = device_absent(far);
  REQUIRE(why);
  CHECK(std::string(why).find('\n') == std::string::npos);
  CHECK(!std::string(why).empty());
  CHECK_THROWS_AS(device_api(far), DeviceError);
  CHECK_THROWS_WITH(device_api(far), std::string("cuda:200 is not available: ") + why);
  CHECK_THROWS_AS(K::ones({2}).to("cuda:200"), DeviceError);
  CHECK_THROWS_AS(K::placeholder({2}).to("cuda:200"), DeviceError);
  CHECK(device_absent(far) == why);  // found out once
  CHECK(K::dot(K::ones({2, 2}), K::ones({2, 2})).to_vector<float>()[0] == 2);
  CHECK(device_absent(cpu) == nullptr);
}

TEST_CASE("what runs on the CPU runs on every device", "[devices][device]") {
  for (const char* name : {"cpu", "cuda:0"}) {
    if (!test::has_device(name)) continue;
    Tensor x = K::constant({{1, 2, 3}, {4, 5, 6}}).to(std::string(name)),
           w = K::constant({{1, -1}, {2, 0}, {0, 1}}).to(std::string(name));
    auto is = [](const Tensor& t, const std::vector<float>& expected) {
      CHECK(static_cast<std::vector<float>>(t.to("cpu").to_vector<float>()) == expected);
    };
    is(K::dot(x, w), {5, 2, 14, 2});
    is(K::square(x) + x, {2, 6, 12, 20, 30, 42});
    is(K::sum(x, 0), {5, 7, 9});
    is(K::max(x, 1), {3, 6});
    is(K::mean(x), {3.5});
    is(K::dot(x, w) + K::dot(x, w), {10, 4, 28, 4});
    is(K::cast(K::greater(x, 2.0), "float32"), {0, 0, 1, 1, 1, 1});
    is(K::batch_dot(x, x, 1), {14, 77});
    is(K::permute_dimensions(x, {1, 0}), {1, 4, 2, 5, 3, 6});
  }
}
