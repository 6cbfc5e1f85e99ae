// tests/core/attrs_test.cpp - the attributes of ops: fields are read back unchanged, whatever bytes their padding had,
// and the tags of all structs differ.
#include <cstring>
#include <map>

#include "ops/engine/axes.h"
#include "ops/product/contraction.h"
#include "ops/random/random_attrs.h"
#include "tests/catch.h"
#include "tests/sources.h"

using namespace kassette;
using namespace kassette::ops;

namespace {

struct Padded {
  static constexpr const char* attrs_name = "padded";
  bool first;
  double number;
  std::uint8_t last;
};

}  // namespace

TEST_CASE("attributes give back the fields that they were made of", "[attrs]") {
  const Attrs padded = Padded{true, 0.5, 7};
  CHECK(padded.as<Padded>().first);
  CHECK(padded.as<Padded>().number == 0.5);
  CHECK(padded.as<Padded>().last == 7);
  // The largest there are: 27 and 29 bytes.
  const Attrs uniform = UniformAttrs{-1, 1, 0.75, {float16, Device(Device::kCuda, 3)}};
  CHECK(uniform.as<UniformAttrs>().top == 0.75);
  CHECK(uniform.as<UniformAttrs>().placement.dtype == float16);
  CHECK(uniform.as<UniformAttrs>().placement.device == Device(Device::kCuda, 3));
  ContractionForm form;
  for (int i = 0; i < kMaxRank; ++i) form.out.push(i);
  form.origin.caller = Caller::batch_dot;
  const Attrs product = form;
  CHECK(product.as<ContractionForm>().out == form.out);
  CHECK(product.as<ContractionForm>().origin.caller == Caller::batch_dot);
}

TEST_CASE("attributes made of nothing are any struct of zeros", "[attrs]") {
  CHECK(Attrs().as<Padded>().number == 0);
  CHECK(Attrs().as<ReduceAttrs>().axes.back == 0);
  CHECK_FALSE(Attrs().as<ReduceAttrs>().axes.keepdims);
}

TEST_CASE("attributes are read back whatever the padding of their struct holds", "[attrs]") {
  Padded a;
  std::memset(static_cast<void*>(&a), 0xff, sizeof a);
  a.first = true;
  a.number = 0.5;
  a.last = 7;
  const Attrs attrs = a;
  CHECK(attrs.as<Padded>().first);
  CHECK(attrs.as<Padded>().number == 0.5);
  CHECK(attrs.as<Padded>().last == 7);
}

TEST_CASE("no two structs of attributes have the same tag", "[attrs][sources]") {
  const std::regex named("\n *static constexpr const char\\* attrs_name = \"(\\w+)\";");
  std::map<std::uint16_t, std::string> names;
  for (const char* folder : {"include", "core", "devices", "ops", "autograd", "nn_backend"})
    for (const char* ending : {".h", ".cpp", ".cuh", ".cu"})
      for (const auto& path : test::files_of(folder, ending)) {
        const std::string text = test::text_of(path);
        for (std::sregex_iterator at(text.begin(), text.end(), named), end; at != end; ++at) {
          const std::string name = (*at)[1];
          const auto [other, is_new] = names.emplace(attrs::tag_of(name.c_str()), name);
          if (!is_new) FAIL_CHECK(path.filename() << ": " << name << " has the tag of " << other->second);
        }
      }
  CHECK(names.size() > 40);
}
