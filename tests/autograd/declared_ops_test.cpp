// tests/autograd/declared_ops_test.cpp - the engine relies only on what an op declares: tested with ops that are
// defined in this file, which the library cannot know.
#include <cstring>
#include <vector>

#include <kassette/backend.h>

#include "core/fast_paths.h"
#include "ops/elementwise/elementwise.h"
#include "ops/engine/op.h"
#include "tests/catch.h"
#include "tests/results.h"
#include "tests/settings.h"

namespace K = kassette::backend;
using kassette::Attrs;
using kassette::DType;
using kassette::FastPath;
using kassette::Tensor;
using kassette::TensorDesc;
using kassette::TensorSpec;
using kassette::test::values;
using namespace kassette::ops;

namespace {

void like_input(const OpCall& call, TensorSpec* out) { out->set(call.spec(0)); }

/// out = 2 in, of floats.
void twice(const void* const* in, void* out, std::int64_t n, const Attrs&) {
  for (std::int64_t i = 0; i < n; ++i) static_cast<float*>(out)[i] = 2 * static_cast<const float*>(in[0])[i];
}
void twice_kernel(const OpCall& call) {
  const void* in[] = {call.in[0].data};
  twice(in, call.out[0]->data(), call.out[0]->numel(), call.attrs);
}
const ElementwiseFns kTwice = {{twice, twice}};
const ElementwiseLoops kTwiceLoops = {[](DType dtype) { return dtype == kassette::float32 ? &kTwice : nullptr; }, 1,
                                      1 << 14, false};

int accumulated = 0;
bool add_twice(const OpCall& call, TensorDesc& sum) {
  ++accumulated;
  for (std::int64_t i = 0; i < sum.numel(); ++i)
    reinterpret_cast<float*>(sum.data())[i] += 2 * call.in[0].as<float>()[i];
  return true;
}

void accumulating_gradient(const VjpContext& ctx);
void plain_gradient(const VjpContext& ctx);
const OpDef kPlainOp{.name = "twice", .rule = like_input, .cpu = twice_kernel, .vjp = plain_gradient};
const OpDef kFusibleOp{.name = "twice",
                       .rule = like_input,
                       .cpu = elementwise_kernel,
                       .vjp = plain_gradient,
                       .traits = kElementwise,
                       .loops = &kTwiceLoops};
const OpDef kAccumulatingOp{
    .name = "twice", .rule = like_input, .cpu = twice_kernel, .vjp = accumulating_gradient, .accumulate = add_twice};
void accumulating_gradient(const VjpContext& ctx) { ctx.accumulate(0, kAccumulatingOp, {}, {ctx.dy()}); }
void plain_gradient(const VjpContext& ctx) { ctx.accumulate(0, kPlainOp, {}, {ctx.dy()}); }

/// How often the fast path is taken while f runs.
template <class F>
std::int64_t taken(FastPath path, F&& f) {
  kassette::test::CountedPaths counted;
  f();
  return times_taken(path);
}

int kernels_run = 0;
void share(const OpCall& call) {
  ++kernels_run;
  kassette::Value v = read_value(*call.in[0].desc);
  call.out[0]->storage = v.storage;
  call.out[0]->offset = v.offset;
}
const OpDef kShareOp{.name = "share", .rule = like_input, .cpu = share, .traits = kView};
const OpDef kAliasOp{.name = "share", .rule = like_input, .cpu = share, .traits = kView, .pattern = Pattern::alias};

}  // namespace

TEST_CASE("an op that has loops is fused in functions", "[declared]") {
  Tensor x = K::placeholder({4}), fed = K::constant({1, 2, 3, 4}, "float32");
  auto chains_of = [&](const OpDef& op) {
    auto f = K::function({x}, {apply1(op, {apply1(op, {x})})});
    Tensor y;
    const std::int64_t chains = taken(FastPath::chain, [&] { y = f({fed})[0]; });
    CHECK(values(y) == std::vector<double>{4, 8, 12, 16});
    return chains;
  };
  CHECK(chains_of(kFusibleOp) == 1);
  CHECK(chains_of(kPlainOp) == 0);
}

TEST_CASE("an op that has accumulate adds to the cotangent that is there, in a backward pass", "[declared]") {
  Tensor x = K::variable({1, 2, 3, 4}, "float32");
  auto gradient = [&](const OpDef& op) {
    accumulated = 0;
    Tensor g = K::gradients(K::sum(apply1(op, {x}) * K::constant({1, 2, 3, 4}) + apply1(op, {x})), {x})[0];
    CHECK(values(g) == std::vector<double>{4, 6, 8, 10});
    return accumulated;
  };
  CHECK(gradient(kAccumulatingOp) == 1);
  CHECK(gradient(kPlainOp) == 0);
}

TEST_CASE("an op that declares that it gives its input as it is is no instruction of a function for known shapes",
          "[declared]") {
  Tensor x = K::placeholder({K::None, 2}), fed = K::constant({{1, 2}, {3, 4}, {5, 6}}, "float32");
  auto runs = [&](const OpDef& op) {
    auto f = K::function({x}, {apply1(op, {x * 2.0}) + 1.0});
    kernels_run = 0;
    for (int call = 0; call < 4; ++call) CHECK(values(f({fed})[0]) == std::vector<double>{3, 5, 7, 9, 11, 13});
    return kernels_run;
  };
  CHECK(runs(kShareOp) == 4);
  CHECK(runs(kAliasOp) == 1);
}
