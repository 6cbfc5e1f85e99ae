// tests/autograd/program/passes_test.cpp - each pass over a program by itself, on programs written by hand.
#include "autograd/program/passes.h"
#include "autograd/program/specialise.h"
#include "autograd/program/residuals_pass.h"

#include <kassette/backend.h>

#include <initializer_list>
#include <memory>
#include <vector>

#include "autograd/program/call.h"
#include "autograd/loops/loop_chain.h"
#include "autograd/loops/loop_program.h"
#include "ops/elementwise/binary.h"
#include "ops/shape/like.h"
#include "ops/reduce/reduce.h"
#include "ops/elementwise/unary.h"
#include "tests/catch.h"
#include "tests/results.h"
#include "tests/settings.h"

using kassette::TensorDesc;
using namespace kassette::ops;
using namespace kassette::autograd;
using Slots = std::vector<int>;

namespace {

const OpDef& add() { return binary_op<Add>(); }
const OpDef& negative() { return unary_op<Negative>(); }

/// A program whose first `n_feeds` slots are fed.
Program feeds(int n_feeds) {
  Program p;
  for (int i = 0; i < n_feeds; ++i)
    p.feeds.push_back({p.n_slots++, kassette::TensorSpec(kassette::float32, {4}), kassette::cpu, {}, false, {}});
  return p;
}

/// Appends op(ins...), whose output it returns.
int append(Program& p, const OpDef& op, std::initializer_list<int> ins, int n_out = 1) {
  Instruction s{};
  s.op = &op;
  s.in = static_cast<int>(p.ins.size());
  s.n_in = static_cast<int>(ins.size());
  p.ins.insert(p.ins.end(), ins);
  s.out = p.n_slots;
  s.n_out = n_out;
  s.fusible = op.loops && op.loops->arity <= 2;
  p.n_slots += n_out;
  p.instructions.push_back(s);
  return s.out;
}

void set_outputs(Program& p, const Slots& outputs) {
  p.outputs = outputs;
  p.root.assign(static_cast<std::size_t>(p.n_slots), 0);
  for (int slot : outputs) p.root[static_cast<std::size_t>(slot)] = 1;
}

Slots makes(const Program& p) {
  Slots outs;
  for (const Instruction& s : p.instructions) outs.push_back(s.out);
  return outs;
}
Slots dying(const Program& p, int first, int n) { return {p.dead.begin() + first, p.dead.begin() + first + n}; }

}  // namespace

TEST_CASE("reorder: instructions go where they are told, whatever the order in which they are told it", "[passes]") {
  Program p = feeds(1);
  const int a = append(p, negative(), {0}), b = append(p, negative(), {0}), c = append(p, negative(), {0});
  reorder(p, {{7, 0}, {1, 2}, {3, 1}});
  CHECK(makes(p) == Slots{c, b, a});
}

TEST_CASE("reads_shape: by the op, and of an instruction of which the shape alone is needed", "[passes]") {
  Program p = feeds(2);
  append(p, broadcast_like_op, {0, 1});
  append(p, negative(), {0});
  p.instruction(0).need = p.instruction(1).need = kValue;
  CHECK_FALSE(reads_shape(p.instruction(0), 0));
  CHECK(reads_shape(p.instruction(0), 1));
  CHECK_FALSE(reads_shape(p.instruction(1), 0));
  p.instruction(1).need = kShape;
  CHECK(reads_shape(p.instruction(1), 0));
}

TEST_CASE("find_roots: outputs, fetches and the values of updates, and nothing else", "[passes]") {
  Program p = feeds(1);
  const int out = append(p, negative(), {0}), fetched = append(p, negative(), {0}), next = append(p, negative(), {0});
  append(p, negative(), {0});
  p.outputs = {out};
  p.fetches = {fetched};
  p.effects.push_back({{}, next, Effect::kSet, "update"});
  p.root = {1};  // of an earlier call
  find_roots(p);
  CHECK(p.root == std::vector<char>{0, 1, 1, 1, 0});
}

TEST_CASE("find_needs: what only shapes are read of needs no value, what nobody reads nothing", "[passes]") {
  Program p = feeds(2);
  const int a = append(p, negative(), {0}), like = append(p, negative(), {a}),
            wide = append(p, broadcast_like_op, {1, like}), unused = append(p, add(), {wide, a});
  set_outputs(p, {wide});
  find_needs(p);
  CHECK(p.instruction(0).need == kShape);  // of a shape only, through the shape of `like`
  CHECK(p.instruction(1).need == kShape);
  CHECK(p.instruction(2).need == kValue);
  CHECK(p.instruction(3).need == kNothing);
  CHECK(p.instruction(3).out == unused);
}

TEST_CASE("find_tail: instructions that nothing needs go, those of updates alone come last", "[passes]") {
  Program p = feeds(1);
  const int first = append(p, negative(), {0}), both = append(p, add(), {0, 0}), next = append(p, add(), {first, both}),
            out = append(p, negative(), {both});
  append(p, add(), {out, out});  // nobody reads it
  set_outputs(p, {out});
  p.effects.push_back({{}, next, Effect::kSet, "update"});
  p.root[static_cast<std::size_t>(next)] = 1;
  find_needs(p);
  find_tail(p);
  CHECK(makes(p) == Slots{both, out, first, next});
  CHECK(p.first_tail == 2);
}

TEST_CASE("find_last_uses: a slot dies with its last reader, its value with the last that reads more than the shape",
          "[passes]") {
  Program p = feeds(2);
  const int a = append(p, negative(), {0}), b = append(p, add(), {a, 1}), c = append(p, broadcast_like_op, {b, a});
  append(p, sum_op, {c});
  set_outputs(p, {c});
  const auto sum = static_cast<std::size_t>(c + 1);
  p.root[sum] = 1;  // needed, and then no root
  find_needs(p);
  p.root[sum] = 0;
  find_last_uses(p);
  CHECK(p.last_use == Slots{0, 1, 2, 2, 3, -1});
  CHECK(p.last_value_use == Slots{0, 1, 1, 2, 3, -1});
  CHECK(dying(p, p.instruction(1).dead, p.instruction(1).n_dead) == Slots{1});
  CHECK(dying(p, p.instruction(1).dead_value, p.instruction(1).n_dead_value) == Slots{1, a});
  CHECK(dying(p, p.instruction(2).dead, p.instruction(2).n_dead) == Slots{a, b});
  // c is an output, and nobody reads the sum
  CHECK(dying(p, p.instruction(3).dead, p.instruction(3).n_dead) == Slots{c + 1});
}

TEST_CASE("find_in_place: a set goes into its variable where no later instruction reads what was there", "[passes]") {
  // v is set to next; if v is also read after the instruction that makes next, its old value has to be kept.
  for (const bool read_later : {false, true}) {
    kassette::Tensor v = kassette::backend::variable({1, 2, 3, 4}), w = kassette::backend::variable({1, 2, 3, 4});
    Program p;
    for (const kassette::Tensor& t : {v, w}) {
      LeafSlot leaf{};
      leaf.slot = p.n_slots++;
      leaf.node = kassette::Access::desc(t).node;
      p.variables.push_back(leaf);
    }
    const int next = append(p, negative(), {0}), other = append(p, add(), {next, read_later ? 0 : next});
    p.effects.push_back({kassette::Access::desc(v).node->cell, next, Effect::kSet, "update"});
    p.effects.push_back({kassette::Access::desc(w).node->cell, other, Effect::kSet, "update"});
    find_roots(p);
    find_needs(p);
    find_tail(p);
    find_last_uses(p);
    find_in_place(p);
    CHECK(p.first_tail == 0);
    CHECK(p.effects[0].in_place_instruction == (read_later ? -1 : 0));
    CHECK(p.effects[0].old_value_slot == (read_later ? -1 : 0));
    CHECK(p.effects[1].in_place_instruction == -1);  // no instruction reads w, so that none may write into it
  }
}

TEST_CASE("find_splats: a repeated number stays one where elementwise instructions alone read it", "[passes]") {
  Program p = feeds(2);
  const int one = append(p, broadcast_like_op, {0, 1}), two = append(p, broadcast_like_op, {0, 1}),
            three = append(p, broadcast_like_op, {0, 1});
  const int sum = append(p, sum_op, {two}), product = append(p, add(), {one, 1});
  set_outputs(p, {sum, product, three});
  find_needs(p);
  find_splats(p);
  CHECK(p.instruction(0).splat);
  CHECK_FALSE(p.instruction(1).splat);  // a sum reads it
  CHECK_FALSE(p.instruction(2).splat);  // the caller gets it
}

TEST_CASE("find_differentiable: through adjoints, and not through shapes", "[passes]") {
  Program p = feeds(3);
  const int wide = append(p, broadcast_like_op, {0, 1}), sum = append(p, sum_op, {wide});
  append(p, negative(), {2});
  set_outputs(p, {sum});
  find_differentiable(p);
  CHECK(p.differentiable == std::vector<Outputs>{1, 0, 0});
}

namespace {

/// A body that does nothing, for passes that look at who runs it and its backward pass.
class Nothing final : public Procedure {
 public:
  kassette::Tensors run(const kassette::Tensors& in) const override { return in; }
  void specs(const OpCall& call, kassette::TensorSpec* out) const override { out[0].set(call.spec(1)); }
  int n_out() const override { return 1; }
  bool differentiable(int, Outputs) const override { return true; }
};

int append_call(Program& p, const kassette::Ref<kassette::Extra>& procedure, std::initializer_list<int> ins) {
  const int out = append(p, call_op, ins);
  ++p.n_slots;  // room for residuals
  p.instructions.back().attrs = {ListAttrs{1}, procedure};
  p.first_tail = static_cast<int>(p.instructions.size());
  return out;
}

kassette::Ref<kassette::Extra> nothing() {
  return kassette::Ref<kassette::Extra>(kassette::Ref<Nothing>::adopt(new Nothing).get());
}
/// The adjoint of a body with two inputs, which differentiates by the second.
kassette::Ref<kassette::Extra> adjoint_of(const kassette::Ref<kassette::Extra>& body) {
  const kassette::Tensor key = kassette::backend::placeholder({4}), x = kassette::backend::placeholder({4});
  const kassette::Tensor g = kassette::backend::gradients(call_node(body, {key, x})[0], {x})[0];
  const kassette::Node& node = *kassette::Access::desc(g).node;
  REQUIRE(node.op == &call_op);
  return node.attrs.extra;
}
Slots reads(const Program& p, int k) {
  const auto slots = p.reads(p.instruction(k));
  return {slots.begin(), slots.end()};
}

}  // namespace

TEST_CASE("find_residuals: bodies without a backward pass keep no residuals", "[passes]") {
  Program p = feeds(2);
  const kassette::Ref<kassette::Extra> body = nothing();
  append_call(p, body, {0, 1});
  set_outputs(p, {2});
  find_residuals(p);
  CHECK(p.instruction(0).n_out == 1);
  CHECK(p.instruction(0).attrs.extra == body);
}

TEST_CASE("find_residuals: a body returns residuals, its adjoint takes them and is the last to do so", "[passes]") {
  Program p = feeds(3);  // two inputs of the body, and the cotangent of its result
  const kassette::Ref<kassette::Extra> body = nothing(), adjoint = adjoint_of(body);
  const int y = append_call(p, body, {0, 1}), dx = append_call(p, adjoint, {0, 1, 2});
  set_outputs(p, {y, dx});
  find_residuals(p);
  REQUIRE(makes(p) == Slots{y, dx});
  const ResidualCall *run = residual_call(p.instruction(0)), *back = residual_call(p.instruction(1));
  REQUIRE(run);
  REQUIRE(back);
  CHECK((run->of == body && run->returns && !run->takes));
  CHECK((back->of == adjoint && back->takes && !back->returns));
  CHECK(p.instruction(0).n_out == 2);
  CHECK(p.instruction(1).n_out == 1);
  CHECK(reads(p, 1) == Slots{0, 1, 2, y + 1});
  CHECK(run->wanted == std::vector<char>{0, 1});
  CHECK(run->vjp == adjoint);
  CHECK((back->last && back->consumes));
}

TEST_CASE("find_residuals: of two adjoints of a run the one that comes last releases the residuals", "[passes]") {
  Program p = feeds(4);
  const kassette::Ref<kassette::Extra> body = nothing(), adjoint = adjoint_of(body);
  const int y = append_call(p, body, {0, 1}), first = append_call(p, adjoint, {0, 1, 2}),
            second = append_call(p, adjoint, {0, 1, 3});
  set_outputs(p, {y, first, second});
  find_residuals(p);
  REQUIRE(makes(p) == Slots{y, first, second});
  CHECK(reads(p, 1) == Slots{0, 1, 2, y + 1});
  CHECK(reads(p, 2) == Slots{0, 1, 3, y + 1});
  CHECK_FALSE(residual_call(p.instruction(1))->consumes);
  CHECK(residual_call(p.instruction(2))->consumes);
}

TEST_CASE("find_residuals: an adjoint whose body nobody runs gets a run before it, of other inputs another",
          "[passes]") {
  Program p = feeds(4);
  const kassette::Ref<kassette::Extra> body = nothing(), adjoint = adjoint_of(body);
  const int y = append_call(p, body, {0, 3}), dx = append_call(p, adjoint, {0, 1, 2}), inserted = p.n_slots;
  set_outputs(p, {y, dx});
  find_residuals(p);
  REQUIRE(makes(p) == Slots{y, inserted, dx});
  CHECK(p.instruction(0).n_out == 1);
  CHECK(reads(p, 1) == Slots{0, 1});
  CHECK(residual_call(p.instruction(1))->returns);
  CHECK(reads(p, 2) == Slots{0, 1, 2, inserted + 1});
  CHECK(p.first_tail == 3);
}

namespace {

const OpDef& multiply() { return binary_op<Multiply>(); }

/// The analyses of a program that runs need.
void analyse(Program& p) {
  find_roots(p);
  find_needs(p);
  find_tail(p);
  find_last_uses(p);
  find_splats(p);
}
/// A float32 array of a shape, without its elements.
TensorDesc shaped(std::initializer_list<std::int64_t> shape) {
  return make_desc(kassette::TensorSpec(kassette::float32, shape), kassette::cpu);
}

}  // namespace

TEST_CASE("specialise: an instruction that returns its input is gone, and what read it reads the input", "[passes]") {
  Program p = feeds(2);
  const int a = append(p, negative(), {0}), like = append(p, sum_to_like_op, {a, 1}), b = append(p, negative(), {like});
  p.outputs = {b, like};
  analyse(p);
  const Program same = specialise(p, {shaped({4}), shaped({4})}), other = specialise(p, {shaped({2, 4}), shaped({4})});
  CHECK(makes(same) == Slots{a, b});
  CHECK(reads(same, 1) == Slots{a});
  CHECK(same.outputs == Slots{b, a});
  CHECK(same.last_use[static_cast<std::size_t>(a)] == 1);
  CHECK(makes(other) == Slots{a, like, b});  // it sums over the rows
  CHECK(reads(other, 2) == Slots{like});
  CHECK(other.outputs == Slots{b, like});
  CHECK(other.known[static_cast<std::size_t>(like)].same_shape(shaped({4})));
}

TEST_CASE("form_group: neighbouring elementwise instructions over as many elements run as one chain", "[passes]") {
  const kassette::Tensor x = kassette::backend::constant({1, 2, 3, 4}), one = kassette::backend::constant({8});
  auto chains_of = [&](Program p, int out, const std::vector<double>& expected) {
    p.outputs = {out};
    analyse(p);
    const kassette::test::CountedPaths counted;
    const kassette::Tensors results = Plan::of(p)->run(kassette::Tensors{x, one});
    CHECK(kassette::test::values(results[0]) == expected);
    return kassette::times_taken(kassette::FastPath::chain);
  };
  Program p = feeds(2);
  const int a = append(p, negative(), {0});
  Program neighbours = p, other_size = p, apart = p;
  int out = append(neighbours, add(), {a, 1});
  CHECK(chains_of(neighbours, out, {7, 6, 5, 4}) == 1);
  out = append(other_size, add(), {a, append(other_size, negative(), {1})});
  CHECK(chains_of(other_size, out, {-9, -10, -11, -12}) == 0);
  out = append(apart, add(), {append(apart, sum_to_like_op, {a, 0}), 1});
  CHECK(chains_of(apart, out, {7, 6, 5, 4}) == 0);
  out = append(apart, negative(), {append(apart, multiply(), {out, 0})});
  CHECK(chains_of(apart, out, {-7, -12, -15, -16}) == 1);
}

TEST_CASE("LoopChains: a chain for each run of elementwise instructions, which writes what others read", "[passes]") {
  Program p = feeds(2);
  const int a = append(p, negative(), {0}), b = append(p, add(), {a, 1}), c = append(p, broadcast_like_op, {b, 1}),
            d = append(p, negative(), {c}), e = append(p, negative(), {d});
  const std::vector<TensorDesc> bodies(static_cast<std::size_t>(p.n_slots), shaped({4}));
  std::vector<char> live_out(bodies.size(), 0);
  live_out[static_cast<std::size_t>(e)] = 1;
  const std::vector<LoopGroup> all{{0}, {1}, {2}, {3}, {4}};
  auto find = [&](const std::vector<char>& may_fuse, std::vector<std::unique_ptr<LoopChain>>& chains) {
    return LoopChains(p, bodies, may_fuse, live_out, all).find(chains);
  };
  std::vector<std::unique_ptr<LoopChain>> chains;
  CHECK(find({1, 1, 1, 1, 1}, chains) == all);  // sixteen bytes are too few
  CHECK(chains.empty());
  const kassette::test::Thresholds scope(kassette::test::thresholds_at(0, 0));
  CHECK(find({1, 1, 1, 1, 1}, chains) == std::vector<LoopGroup>{{.chain = 0}, {2}, {.chain = 1}});
  REQUIRE(chains.size() == 2);
  CHECK(chains[0]->instructions == std::vector<int>{0, 1});
  CHECK(chains[0]->made == Slots{b});
  CHECK(chains[1]->instructions == std::vector<int>{3, 4});
  CHECK(chains[1]->made == Slots{e});
  chains.clear();
  CHECK(find({1, 0, 1, 1, 1}, chains) == std::vector<LoopGroup>{{0}, {1}, {2}, {.chain = 0}});
}

TEST_CASE("with_adjoint: a loop keeps what the adjoint of a step reads, and an adjoint of its own for the last step",
          "[passes]") {
  Program p = feeds(3);  // an element x, the state h, a captured w
  const int product = append(p, multiply(), {1, 2}), h = append(p, add(), {product, 0});
  p.outputs = {h, h};  // an output of the step, and the next state
  analyse(p);
  const std::vector<TensorDesc> args(3, shaped({4}));
  const LoopSignature signature{.n_xs = 1, .n_carry = 1, .n_captures = 1, .n_ys = 1};
  const kassette::Ref<LoopProgram> loop =
      LoopProgram::with_adjoint(*Plan::of(p), signature, args, /*wanted=*/{0, 0, 1}, /*has_dy=*/{1, 0}, /*steps=*/3);
  REQUIRE(loop);
  const auto x = static_cast<std::size_t>(loop->arg_slots[0]), state = static_cast<std::size_t>(loop->arg_slots[1]),
             w = static_cast<std::size_t>(loop->arg_slots[2]), out = static_cast<std::size_t>(loop->out_slots[0]);
  CHECK(loop->forward_instructions.size() == 2);
  CHECK((loop->is_residual[state] && loop->is_residual[w]));
  CHECK_FALSE((loop->is_residual[x] || loop->is_residual[out]));
  CHECK((loop->loop_varying[x] && loop->loop_varying[state] && loop->loop_varying[out]));
  CHECK_FALSE(loop->loop_varying[w]);
  // In the last step the output alone has a cotangent, in those before it the state too.
  REQUIRE(loop->step_adjoints.size() == 2);
  CHECK(loop->step_adjoints[0].has_dy == std::vector<char>{1, 0});
  CHECK(loop->step_adjoints[1].has_dy == std::vector<char>{1, 1});
  CHECK((loop->step_adjoints[0].next == 1 && loop->step_adjoints[1].next == 1));
  for (const StepAdjoint& adjoint : loop->step_adjoints)
    CHECK((adjoint.din[0] < 0 && adjoint.din[1] >= 0 && adjoint.din[2] >= 0));
  CHECK((loop->dy_slots[0] >= 0 && loop->dy_slots[1] >= 0 && loop->sum_slots[0] >= 0));
}
