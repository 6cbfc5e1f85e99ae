// tests/ops/apply_test.cpp - what a call does, by what was seen of its inputs.
#include "ops/apply.h"

#include <string>

#include "tests/catch.h"

using kassette::Context;
using namespace kassette::ops;

namespace {

constexpr std::uint8_t kSymbolic = kassette::kSymbolic;

struct Case {
  const char* when;
  std::uint8_t traits;
  Seen seen;
  bool recording, in_symbolic_scope;
  std::string does;  // symbolic, records, draw
};

std::string said(const Decision& d) {
  return std::string(d.symbolic ? "symbolic " : "") + (d.records ? "records " : "") + (d.draw ? "draw " : "");
}

const Seen kConstant, kTracked{.tracked = true}, kPlaceholder{.flags = kSymbolic, .tracked = true};

const Case kCases[] = {
    {"constants", kPlain, kConstant, true, false, ""},
    {"constants in a symbolic scope", kPlain, kConstant, true, true, ""},
    {"history", kPlain, kTracked, true, false, "records "},
    {"history without recording", kPlain, kTracked, false, false, ""},
    {"history in a symbolic scope", kPlain, kTracked, true, true, "symbolic records "},
    {"a placeholder", kPlain, kPlaceholder, true, false, "symbolic records "},
    {"a placeholder without recording", kPlain, kPlaceholder, false, false, "symbolic records "},
    {"a draw", kDraws, kConstant, true, false, "records draw "},
    {"a draw without recording", kDraws, kConstant, false, false, "records draw "},
    {"a draw of what has history", kDraws, kTracked, true, false, "records "},
    {"a key in a symbolic scope", kSource, kConstant, true, true, "symbolic records "},
    {"a print in a symbolic scope", kPrints, kConstant, true, true, "symbolic records "},
    {"a print", kPrints, kConstant, true, false, ""},
    {"an update in a symbolic scope", kEffect, kConstant, true, true, "symbolic records "},
};

Decision decided(const Case& c, const Seen& seen, std::uint8_t depth = 0, std::uint8_t floor = 0) {
  OpDef op{.name = "op", .rule = nullptr, .cpu = nullptr, .traits = c.traits};
  Context& context = kassette::context();
  kassette::Scoped<bool> recording(context.recording, c.recording), symbolic(context.symbolic, c.in_symbolic_scope);
  kassette::Scoped<std::uint8_t> at_depth(context.depth, depth), at_floor(context.floor, floor);
  return decide(op, {}, seen, context);
}

}  // namespace

TEST_CASE("whether a call is computed and recorded follows from its row, its inputs and the scope", "[apply]") {
  for (const Case& c : kCases) {
    INFO(c.when);
    CHECK(said(decided(c, c.seen)) == c.does);
  }
}

TEST_CASE("the level of a result is that of its inputs, of a draw the body's, and in a branch the branch's",
          "[apply]") {
  const Case plain{"", kPlain, {}, true, false, ""}, draw{"", kDraws, {}, true, false, ""};
  Seen seen{.level = 2, .tracked = true};
  CHECK(decided(plain, seen, /*depth=*/3).level == 2);
  CHECK(decided(draw, seen, /*depth=*/3).level == 3);
  CHECK(decided(draw, seen, /*depth=*/1).level == 2);
  CHECK(decided(plain, seen, /*depth=*/3, /*floor=*/3).level == 2);
  seen.flags = kSymbolic;
  CHECK(decided(plain, seen, /*depth=*/3, /*floor=*/3).level == 3);
}

struct PlacedAttrs {
  static constexpr const char* attrs_name = "placed";
  Placement placement;
};
TEST_CASE("a result is on the device of the inputs, or where its row says", "[apply]") {
  const kassette::Device gpu(kassette::Device::kCuda, 1);
  const OpDef plain{.name = "op", .rule = nullptr, .cpu = nullptr},
      placed{.name = "op", .rule = nullptr, .cpu = nullptr, .placement = placement_in<PlacedAttrs>};
  const kassette::Attrs attrs = PlacedAttrs{{kassette::float32, gpu}};
  const Context& c = kassette::context();
  CHECK(decide(plain, attrs, {.device = gpu}, c).device == gpu);
  CHECK(decide(plain, attrs, {}, c).device == kassette::cpu);
  CHECK(decide(placed, attrs, {}, c).device == gpu);
}
