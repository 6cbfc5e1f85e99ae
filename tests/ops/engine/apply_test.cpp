// tests/ops/engine/apply_test.cpp - how the inputs of a call decide whether it is computed or recorded, at which depth,
// and on which device.
#include "ops/engine/apply.h"

#include <string>

#include "tests/catch.h"

using kassette::Context;
using namespace kassette::ops;

namespace {

constexpr std::uint8_t kSymbolic = kassette::kSymbolic;

struct Case {
  const char* when;
  std::uint8_t traits = kPlain;
  InputSummary seen = {};
  bool recording = true, in_symbolic_scope = false;
  std::string does = "";  // symbolic, records, draw
};

std::string said(const Decision& d) {
  return std::string(d.symbolic ? "symbolic " : "") + (d.records ? "records " : "") + (d.draw ? "draw " : "");
}

const InputSummary kTracked{.tracked = true}, kPlaceholder{.flags = kSymbolic, .tracked = true};

const Case kCases[] = {
    {.when = "constants"},
    {.when = "constants in a symbolic scope", .in_symbolic_scope = true},
    {.when = "history", .seen = kTracked, .does = "records "},
    {.when = "history without recording", .seen = kTracked, .recording = false},
    {.when = "history in a symbolic scope", .seen = kTracked, .in_symbolic_scope = true, .does = "symbolic records "},
    {.when = "a placeholder", .seen = kPlaceholder, .does = "symbolic records "},
    {.when = "a placeholder without recording", .seen = kPlaceholder, .recording = false, .does = "symbolic records "},
    {.when = "a draw", .traits = kDraws, .does = "records draw "},
    {.when = "a draw without recording", .traits = kDraws, .recording = false, .does = "records draw "},
    {.when = "a draw of what has history", .traits = kDraws, .seen = kTracked, .does = "records "},
    {.when = "a key in a symbolic scope", .traits = kMakesKey, .in_symbolic_scope = true, .does = "symbolic records "},
    {.when = "a print in a symbolic scope", .traits = kPrints, .in_symbolic_scope = true, .does = "symbolic records "},
    {.when = "a print", .traits = kPrints},
    {.when = "an update in a symbolic scope",
     .traits = kEffect,
     .in_symbolic_scope = true,
     .does = "symbolic records "},
};

Decision decided(const Case& c, const InputSummary& seen, std::uint8_t depth = 0, std::uint8_t floor = 0) {
  OpDef op{.name = "op", .rule = nullptr, .cpu = nullptr, .traits = c.traits};
  Context& context = kassette::context();
  kassette::Scoped<bool> recording(context.recording, c.recording), symbolic(context.symbolic, c.in_symbolic_scope);
  kassette::Scoped<std::uint8_t> at_depth(context.depth, depth), at_floor(context.branch_depth, floor);
  return decide(op, {}, seen, context);
}

}  // namespace

TEST_CASE("whether a call is computed and recorded follows from the op, its inputs and the scope", "[apply]") {
  for (const Case& c : kCases) {
    INFO(c.when);
    CHECK(said(decided(c, c.seen)) == c.does);
  }
}

TEST_CASE("the depth of a result is that of its inputs, of a draw the body's, and in a branch the branch's",
          "[apply]") {
  const Case plain{.when = ""}, draw{.when = "", .traits = kDraws};
  InputSummary seen{.depth = 2, .tracked = true};
  CHECK(decided(plain, seen, /*depth=*/3).depth == 2);
  CHECK(decided(draw, seen, /*depth=*/3).depth == 3);
  CHECK(decided(draw, seen, /*depth=*/1).depth == 2);
  CHECK(decided(plain, seen, /*depth=*/3, /*floor=*/3).depth == 2);
  seen.flags = kSymbolic;
  CHECK(decided(plain, seen, /*depth=*/3, /*floor=*/3).depth == 3);
}

struct PlacedAttrs {
  static constexpr const char* attrs_name = "placed";
  Placement placement;
};
TEST_CASE("a result is on the device of the inputs, or where its op says", "[apply]") {
  const kassette::Device gpu(kassette::Device::kCuda, 1);
  const OpDef plain{.name = "op", .rule = nullptr, .cpu = nullptr},
      placed{.name = "op", .rule = nullptr, .cpu = nullptr, .placement = placement_in<PlacedAttrs>};
  const kassette::Attrs attrs = PlacedAttrs{{kassette::float32, gpu}};
  const Context& c = kassette::context();
  CHECK(decide(plain, attrs, {.device = gpu}, c).device == gpu);
  CHECK(decide(plain, attrs, {}, c).device == kassette::cpu);
  CHECK(decide(placed, attrs, {}, c).device == gpu);
}
