// tests/nn_backend/config_test.cpp - configuration values, spec 2.1 and 4.1.
#include <kassette/backend.h>

#include <sstream>
#include <thread>
#include <vector>

#include "tests/catch.h"

using kassette::Tensor;
namespace K = kassette::backend;

TEST_CASE("the backend is tensorflow", "[config]") {
  CHECK(K::backend() == "tensorflow");
}

TEST_CASE("epsilon is 1e-7 until it is set", "[config]") {
  CHECK(K::epsilon() == 1e-7);
  K::set_epsilon(1e-3);
  CHECK(K::epsilon() == 1e-3);
  K::set_epsilon(1e-7);
}

TEST_CASE("floatx decides the dtype of what is made", "[config]") {
  CHECK(K::floatx() == "float32");
  auto old = K::floatx();
  for (const char* name : {"float16", "float32", "float64"}) {
    K::set_floatx(std::string(name));
    CHECK(K::floatx() == std::string(name));
    CHECK(K::variable({10}).dtype() == std::string(name));
    CHECK(K::cast_to_floatx({1, 2}).dtype() == std::string(name));
  }
  K::set_floatx(old);
  CHECK(K::floatx() == kassette::float32);
}

TEST_CASE("a bad floatx is a ValueError and changes nothing", "[config]") {
  CHECK_THROWS_AS(K::set_floatx(""), kassette::ValueError);
  CHECK_THROWS_AS(K::set_floatx(K::None), kassette::ValueError);
  CHECK_THROWS_WITH(K::set_floatx("beerfloat"),
                    "set_floatx: unknown floatx type 'beerfloat'; expected 'float16', 'float32' or 'float64'");
  CHECK(K::floatx() == "float32");
}

TEST_CASE("cast_to_floatx converts what it is given", "[config]") {
  Tensor x = K::constant({1, 2}, "int32");
  Tensor y = K::cast_to_floatx(x);
  CHECK(y.dtype() == kassette::float32);
  CHECK(std::vector<float>(y.to_vector<float>()) == std::vector<float>{1, 2});
  CHECK(K::cast_to_floatx(2.5).item<double>() == 2.5);
  CHECK_THROWS_WITH(K::cast_to_floatx(Tensor()), "cast_to_floatx: an empty Tensor (an uninitialised variable?)");
}

TEST_CASE("the data format is one of two", "[config]") {
  CHECK(K::image_data_format() == "channels_last");
  K::set_image_data_format("channels_first");
  CHECK(K::image_data_format() == "channels_first");
  CHECK(K::normalize_data_format() == "channels_first");
  CHECK(K::normalize_data_format("Channels_LAST") == "channels_last");
  CHECK_THROWS_WITH(K::set_image_data_format("Channels_last"),
                    "set_image_data_format: unknown data format 'Channels_last'; expected 'channels_first' or 'channels_last'");
  CHECK_THROWS_WITH(K::set_image_data_format("th"),
                    "set_image_data_format: unknown data format 'th'; expected 'channels_first' or 'channels_last'");
  CHECK_THROWS_WITH(K::normalize_data_format("middle"),
                    "normalize_data_format: unknown data format 'middle'; expected 'channels_first' or 'channels_last'");
  CHECK(K::image_data_format() == "channels_first");
  K::set_image_data_format(K::normalize_data_format("channels_last"));
}

TEST_CASE("uids count per prefix and start again", "[config]") {
  K::reset_uids();
  auto first = K::get_uid();
  CHECK(first == 1);
  CHECK(K::get_uid() == 2);
  CHECK(K::get_uid("dense") == 1);
  CHECK(K::get_uid("dense") == 2);
  K::reset_uids();
  CHECK(K::get_uid() == first);
  K::reset_uids();
}

TEST_CASE("uids are unique across threads", "[config]") {
  K::reset_uids();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([] {
      for (int i = 0; i < 250; ++i) K::get_uid("t");
    });
  for (std::thread& t : threads) t.join();
  CHECK(K::get_uid("t") == 1001);
  K::reset_uids();
}
