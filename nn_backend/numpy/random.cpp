// nn_backend/numpy/random.cpp - np::random: generators, distributions, permutations and choices.
#include <kassette/numpy/random.h>

#include <cmath>
#include <limits>

#include "core/convert.h"
#include "core/text.h"
#include "nn_backend/numpy/arguments.h"
#include "nn_backend/numpy/axes.h"
#include "nn_backend/numpy/draws.h"
#include "ops/engine/dims.h"
#include "ops/linalg/linalg.h"
#include "ops/order/order.h"
#include "ops/product/matmul.h"
#include "ops/random/generator.h"
#include "ops/random/rejection.h"
#include "ops/reduce/reduce.h"
#include "ops/reduce/reduce_arg.h"
#include "ops/reduce/scan.h"
#include "ops/shape/checked.h"
#include "ops/shape/like.h"
#include "ops/shape/shaping.h"

namespace kassette {
namespace numpy {
namespace random {
namespace {

using ops::attribute_errors;

}  // namespace

Generator::Generator(Scalar seed) {
  if (seed.is_none()) {
    Scoped<bool> scope(context().symbolic, false);
    const Tensor key = ops::next_key(None, "default_rng");
    source_ = ops::generator_source({static_cast<std::uint64_t>(key.to_vector<std::int64_t>()[0]), 0});
    return;
  }
  if (Access::kind(seed) != Scalar::kInt && Access::kind(seed) != Scalar::kUint)
    fail<TypeError>({"default_rng", "seed"}, "is ", scalar_text(seed), kExpected, "it must be an integer or None");
  source_ = ops::generator_source({static_cast<std::uint64_t>(Access::int_value(seed)), 0});
}
Tensor Generator::key(const char* what, const Tensors& inputs) const {
  // A draw for placeholders is only recorded.
  bool symbolic = context().symbolic;
  for (const Tensor& t : inputs) symbolic |= t.symbolic();
  Scoped<bool> scope(context().symbolic, symbolic);
  return source_.defined() ? ops::generator_key(source_, what) : ops::next_key(None, what);
}
Tensor Generator::state() const {
  if (!source_.defined())
    fail<ValueError>({"state"}, "the global generator has none", kRemedy, "draw from np::random::default_rng");
  const ops::GeneratorState now = ops::generator_state(source_);
  const std::int64_t words[] = {static_cast<std::int64_t>(now.seed), static_cast<std::int64_t>(now.draws)};
  return ops::as_tensor(Operand(std::vector<std::int64_t>(words, words + 2)), int64, {"state"}).to(cpu);
}
void Generator::set_state(const Tensor& state) {
  if (!source_.defined())
    fail<ValueError>({"set_state"}, "the global generator has no state", kRemedy, "use np::random::seed");
  if (!state.defined() || state.symbolic() || state.dtype() != int64 || state.shape() != Shape({2}))
    fail<ValueError>({"set_state", "state"}, "is no state of a generator", kExpected, "it must hold two int64");
  const auto words = state.to_vector<std::int64_t>();
  ops::set_generator_state(source_, {static_cast<std::uint64_t>(words[0]), static_cast<std::uint64_t>(words[1])});
}
void seed(Scalar seed) {
  if (Access::kind(seed) != Scalar::kInt && Access::kind(seed) != Scalar::kUint)
    fail<TypeError>({"seed", "seed"}, "is ", scalar_text(seed), kExpected, "it must be an integer");
  ops::set_random_seed(static_cast<std::uint64_t>(Access::int_value(seed)));
}

Tensor Generator::random(const Dims& size, DType dtype) const {
  return attribute_errors("random", [&] {
    const Tensor dims = plain_dims("random", size);
    return ops::random_uniform({key("random", {dims}), dims, sample_dtype("random", dtype, ops::default_float())});
  });
}
Tensor Generator::standard_normal(const Dims& size, DType dtype) const {
  return attribute_errors("standard_normal", [&] {
    const Tensor dims = plain_dims("standard_normal", size);
    const DType of = sample_dtype("standard_normal", dtype, ops::default_float());
    return ops::random_normal({key("standard_normal", {dims}), dims, of});
  });
}
Tensor Generator::uniform(const Operand& low, const Operand& high, const Dims& size, DType dtype) const {
  return attribute_errors("uniform", [&] {
    const Parameters p("uniform", {{"low", low}, {"high", high}}, size, dtype);
    if (is_number(low) && is_number(high)) {
      const double from = number(low, {"uniform", "low"}), to = number(high, {"uniform", "high"});
      ops::check_bounds(from, to, p.dtype);
      return ops::random_uniform(p.draw(key("uniform", p.inputs()), p.dtype), from, to);
    }
    return p.fitting(ops::random_between(p.draw(key("uniform", p.inputs()), p.dtype), p.at[0], p.at[1]));
  });
}
Tensor Generator::normal(const Operand& loc, const Operand& scale, const Dims& size, DType dtype) const {
  return attribute_errors("normal", [&] {
    check_not_negative(scale, {"normal", "scale"});
    const Parameters p("normal", {{"loc", loc}, {"scale", scale}}, size, dtype);
    const Tensor z = ops::random_normal(p.draw(key("normal", p.inputs()), p.dtype));
    return p.fitting(from_draws({z}, p.at, [&](const Tensors& d) { return p.at[0] + p.at[1] * d[0]; }));
  });
}
Tensor Generator::integers(const Scalar& low, const Scalar& high, const Dims& size,
                           const IntegersOptions& options) const {
  return attribute_errors("integers", [&] {
    const Scalar from = high.is_none() ? Scalar(0) : low, to = high.is_none() ? low : high;
    for (const Scalar& s : {from, to})
      if (Access::kind(s) != Scalar::kInt)
        fail<TypeError>({"integers", &s == &from ? "low" : "high"}, "is ", scalar_text(s), kExpected,
                        "it must be an integer that fits int64");
    if (!options.dtype.is_integer())
      fail<TypeError>({"integers", "dtype"}, "is ", options.dtype, kExpected, "it must be an integer dtype");
    const std::int64_t first = Access::int_value(from), last = Access::int_value(to);
    if (options.endpoint ? first > last : first >= last)
      fail<ValueError>({"integers"}, "low ", first, options.endpoint ? " is above high " : " is not below high ", last);
    if (options.endpoint && last == std::numeric_limits<std::int64_t>::max())
      fail<ValueError>({"integers", "high"}, "is ", last, kExpected, "it must be below that");
    const std::int64_t end = options.endpoint ? last + 1 : last;
    for (std::int64_t v : {first, end - 1}) (void)ops::scalar_tensor(v, options.dtype, {"integers"});
    const Tensor dims = plain_dims("integers", size);
    return ops::random_integers({key("integers", {dims}), dims, options.dtype}, first, end);
  });
}
Tensor Generator::exponential(const Operand& scale, const Dims& size, DType dtype) const {
  return attribute_errors("exponential", [&] {
    check_not_negative(scale, {"exponential", "scale"});
    const Parameters p("exponential", {{"scale", scale}}, size, dtype);
    const Tensor u = ops::random_uniform(p.draw(key("exponential", p.inputs()), wide(p.dtype)));
    return p.fitting(
        from_draws({u}, p.at, [&](const Tensors& d) { return ops::cast(exponential_of(d[0]), p.dtype) * p.at[0]; }));
  });
}
Tensor Generator::laplace(const Operand& loc, const Operand& scale, const Dims& size, DType dtype) const {
  return attribute_errors("laplace", [&] {
    check_not_negative(scale, {"laplace", "scale"});
    const Parameters p("laplace", {{"loc", loc}, {"scale", scale}}, size, dtype);
    const Tensor u = ops::random_uniform(p.draw(key("laplace", p.inputs()), wide(p.dtype))),
                 v = ops::random_uniform(p.draw(key("laplace", p.inputs()), wide(p.dtype)));
    return p.fitting(from_draws({u, v}, p.at, [&](const Tensors& d) {
      const Tensor z = ops::cast(exponential_of(d[0]) - exponential_of(d[1]), p.dtype);
      return p.at[0] + p.at[1] * z;
    }));
  });
}
Tensor Generator::gumbel(const Operand& loc, const Operand& scale, const Dims& size, DType dtype) const {
  return attribute_errors("gumbel", [&] {
    check_not_negative(scale, {"gumbel", "scale"});
    const Parameters p("gumbel", {{"loc", loc}, {"scale", scale}}, size, dtype);
    const Tensor u = ops::random_uniform(p.draw(key("gumbel", p.inputs()), wide(p.dtype)), kLeast, 1);
    return p.fitting(from_draws(
        {u}, p.at, [&](const Tensors& d) { return p.at[0] + p.at[1] * ops::cast(gumbel_of(d[0]), p.dtype); }));
  });
}
Tensor Generator::multivariate_normal(const Operand& mean, const Operand& cov, const Dims& size) const {
  const char* what = "multivariate_normal";
  return attribute_errors(what, [&] {
    const Tensors p = float_tensors(what, {{"mean", mean}, {"cov", cov}});
    const int rank = known_rank(p[0], {what, "mean"}), cov_rank = known_rank(p[1], {what, "cov"});
    if (rank < 1) fail<ValueError>({what, "mean"}, "is a number", kExpected, "it must be a vector");
    if (cov_rank < 2) fail<ValueError>({what, "cov"}, "has shape ", p[1].shape(), kExpected, "it must be a matrix");
    const Tensor n = slice_along(ops::shape_of(p[0], int64), 0, rank - 1, None);
    Tensor dims = ops::shape_of(p[0], int64);
    if (size.size_ >= 0 || size.whole_)
      dims = ops::concatenate({ops::cast(ops::dims_tensor(size, what, "size"), int64), n}, 0);
    const Tensor root = ops::cholesky(p[1]);
    const Tensor z = ops::random_normal({key(what, {dims, p[0], p[1]}), dims, p[0].dtype(), p[0].device()});
    return from_draws({z}, p, [&](const Tensors& d) {
      const Tensor rows = ops::expand_dims(d[0], -2);
      return p[0] + ops::squeeze(ops::matmul(rows, root, false, /*transpose_b=*/true), -2);
    });
  });
}
Tensor Generator::gamma(const Operand& shape, const Operand& scale, const Dims& size, DType dtype) const {
  return attribute_errors("gamma", [&] {
    check_not_negative(shape, {"gamma", "shape"});
    check_not_negative(scale, {"gamma", "scale"});
    const Parameters p("gamma", {{"shape", shape}, {"scale", scale}}, size, dtype);
    const Tensor g =
        ops::random_rejection(key("gamma", p.inputs()), p.dims, ops::RejectionLaw::gamma, p.at[0], p.at[0]);
    return p.fitting(from_draws({g}, p.at, [&](const Tensors& d) { return d[0] * p.at[1]; }));
  });
}
Tensor Generator::beta(const Operand& a, const Operand& b, const Dims& size, DType dtype) const {
  return attribute_errors("beta", [&] {
    check_not_negative(a, {"beta", "a"});
    check_not_negative(b, {"beta", "b"});
    const Parameters p("beta", {{"a", a}, {"b", b}}, size, dtype);
    const Tensor first = ops::cast(p.at[0], float64), second = ops::cast(p.at[1], float64);
    const Tensor x = ops::random_rejection(key("beta", p.inputs()), p.dims, ops::RejectionLaw::gamma, first, first),
                 y = ops::random_rejection(key("beta", p.inputs()), p.dims, ops::RejectionLaw::gamma, second, second);
    return p.fitting(
        from_draws({x, y}, {}, [&](const Tensors& d) { return ops::cast(d[0] / (d[0] + d[1]), p.dtype); }));
  });
}
Tensor Generator::dirichlet(const Operand& alpha, const Dims& size, DType dtype) const {
  return attribute_errors("dirichlet", [&] {
    const Parameters p("dirichlet", {{"alpha", alpha}}, None, dtype);
    const int rank = known_rank(p.at[0], {"dirichlet", "alpha"});
    if (rank == 0)
      fail<ValueError>({"dirichlet", "alpha"}, "is a number", kExpected, "it must have an axis of classes");
    Tensor dims = p.dims;
    if (size.size_ >= 0 || size.whole_)
      dims = ops::concatenate(
          {ops::cast(ops::dims_tensor(size, "dirichlet", "size"), int64), slice_along(p.dims, 0, rank - 1, None)}, 0);
    const Tensor a = ops::cast(p.at[0], float64);
    const Tensor g = ops::random_rejection(key("dirichlet", {dims, p.at[0]}), dims, ops::RejectionLaw::gamma, a, a);
    return from_draws({g}, {}, [&](const Tensors& d) { return ops::cast(d[0] / ops::sum(d[0], -1, true), p.dtype); });
  });
}
Tensor Generator::poisson(const Operand& lam, const Dims& size) const {
  return attribute_errors("poisson", [&] {
    check_not_negative(lam, {"poisson", "lam"});
    const Parameters p("poisson", {{"lam", lam}}, size, float64);
    const Tensor n =
        ops::random_rejection(key("poisson", p.inputs()), p.dims, ops::RejectionLaw::poisson, p.at[0], p.at[0]);
    return p.fitting(from_draws({n}, {}, [](const Tensors& d) { return ops::cast(d[0], int64); }));
  });
}
Tensor Generator::binomial(const Operand& n, const Operand& p, const Dims& size) const {
  return attribute_errors("binomial", [&] {
    check_not_negative(n, {"binomial", "n"});
    check_probability(p, {"binomial", "p"});
    const ArrayArg trials(n, {"binomial", "n"}), chance(p, {"binomial", "p"});
    const Tensor trials64 = ops::cast(trials, float64), chance64 = ops::cast(chance, float64);
    const Parameters all("binomial", {{"n", trials64}, {"p", chance64}}, size, float64);
    const Tensor k = ops::random_rejection(key("binomial", all.inputs()), all.dims, ops::RejectionLaw::binomial,
                                           all.at[0], all.at[1]);
    return all.fitting(from_draws({k}, {}, [](const Tensors& d) { return ops::cast(d[0], int64); }));
  });
}
Tensor Generator::bernoulli(const Operand& p, const Dims& size) const {
  return attribute_errors("bernoulli", [&] {
    check_probability(p, {"bernoulli", "p"});
    const Parameters all("bernoulli", {{"p", p}}, size, None);
    const Tensor u = ops::random_uniform(all.draw(key("bernoulli", all.inputs()), wide(all.dtype)));
    const Tensor chance = ops::cast(all.at[0], wide(all.dtype));
    return all.fitting(from_draws({u}, {}, [&](const Tensors& d) { return ops::less(d[0], chance); }));
  });
}

Tensor Generator::categorical(const Operand& logits, const Dims& size) const {
  return attribute_errors("categorical", [&] {
    const Tensor t = float_tensors("categorical", {{"logits", logits}})[0];
    const int rank = known_rank(t, {"categorical", "logits"});
    if (rank == 0)
      fail<ValueError>({"categorical", "logits"}, "is a number", kExpected, "it must have an axis of classes");
    Tensor dims = ops::shape_of(t, int64);
    if (size.size_ >= 0 || size.whole_)
      dims = ops::concatenate(
          {ops::cast(ops::dims_tensor(size, "categorical", "size"), int64), slice_along(dims, 0, rank - 1, None)}, 0);
    const DType dtype = wide(t.dtype());
    const Tensor u = ops::random_uniform({key("categorical", {dims, t}), dims, dtype, t.device()}, kLeast, 1);
    const Tensor scores = ops::cast(t, dtype);
    return from_draws({u}, {}, [&](const Tensors& d) { return ops::argmax(scores + gumbel_of(d[0]), -1); });
  });
}

/// Positions along an axis in random order.
static Tensor order_of(const Tensor& key, const Tensor& n, Device device) {
  const Tensor u = ops::random_uniform({key, ops::expand_dims(n, 0), float64, device});
  return from_draws({u}, {}, [](const Tensors& d) { return ops::argsort(d[0], 0); });
}
Tensor Generator::shuffle(const Operand& x, int axis) const {
  return attribute_errors("shuffle", [&] {
    Tensor t = ArrayArg(x, {"shuffle", "x"});
    const int along = one_axis_of("shuffle", t, axis);
    const Tensor n = size_along(t, along);
    const Tensor order = order_of(key("shuffle", {n, t}), n, t.device());
    return from_draws({order}, {t}, [&](const Tensors& d) { return ops::gather(t, d[0], along); });
  });
}
/// An integer x is a number of elements. Returns whether it is one.
static bool is_count(const char* what, const Operand& x, std::int64_t* n) {
  if (Access::kind(x) != Scalar::kInt) return false;
  *n = Access::int_value(x);
  if (*n < 0) fail<ValueError>({what, "x"}, "is ", *n, kExpected, "it must be at least 0");
  return true;
}
Tensor Generator::permutation(const Operand& x) const {
  std::int64_t n = 0;
  if (!is_count("permutation", x, &n)) {
    return attribute_errors("permutation", [&] { return shuffle(x, 0); });
  }
  return attribute_errors("permutation", [&] {
    return order_of(key("permutation", Tensors()), ops::scalar_tensor(n, int64), context().default_device);
  });
}

/// Probabilities as float64, one for each of n elements. Those whose values are known must add up to 1.
static Tensor probabilities(const Operand& p, const Tensor& n) {
  const At at{"choice", "p"};
  Tensor t = ops::cast(ArrayArg(p, at), float64);
  if (known_rank(t, at) != 1) fail<ValueError>(at, "has shape ", t.shape(), kExpected, "it must be a vector");
  auto check = [at](const TensorSpec& d, std::int64_t count) {
    if (d.rank == 1 && differ(d.dims[0], count))
      fail<ValueError>(at, "has ", d.dims[0], " elements", kExpected, "there must be ", count);
  };
  if (n.symbolic())
    t = ops::checked(t, places_below(n, t.device()), [check](const TensorSpec& d, const TensorSpec& places) {
      if (places.rank == 1) check(d, places.dims[0]);
    });
  else t = ops::checked(t, [check, count = n.item<std::int64_t>()](const TensorSpec& d) { check(d, count); });
  if (t.symbolic()) return t;
  double sum = 0;
  for (double v : t.to_vector<double>()) {
    if (!(v >= 0)) fail<ValueError>(at, "holds ", v, kExpected, "probabilities must be at least 0");
    sum += v;
  }
  if (std::fabs(sum - 1) > 1e-6) fail<ValueError>(at, "adds up to ", sum, kExpected, "probabilities add up to 1");
  return t;
}
static void check_enough(const char* what, std::int64_t wanted, std::int64_t n) {
  if (wanted > n)
    fail<ValueError>({what, "size"}, "asks for ", wanted, " of ", n, " elements", kRemedy, "give .replace = true");
}
Tensor Generator::choice(const Operand& x, const Dims& size, const ChoiceOptions& options) const {
  const char* what = "choice";
  return attribute_errors(what, [&] {
    std::int64_t count = 0;
    const bool numbers = is_count(what, x, &count);
    Tensor t = numbers ? ops::scalar_tensor(count, int64) : ArrayArg(x, {what, "x"}).tensor();
    const int axis = numbers ? 0 : one_axis_of(what, t, options.axis);
    const Tensor n = numbers ? t : size_along(t, axis), dims = plain_dims(what, size);
    const Device device = numbers ? context().default_device : t.device();
    if (numbers && count == 0) fail<ValueError>({what, "x"}, "is 0", kExpected, "there must be an element");
    const bool weighted = !options.p.is_none();
    const Tensor p = weighted ? probabilities(options.p, n) : Tensor();
    const Tensor k = options.replace ? Tensor() : ops::prod(ops::cast(dims, int64), None, false);
    if (k.defined() && !k.symbolic() && !n.symbolic())
      check_enough(what, k.item<std::int64_t>(), n.item<std::int64_t>());
    Tensor drawn;
    if (options.replace && !weighted) {
      drawn = ops::random_integers({key(what, {dims, t}), dims, int64, device}, ops::scalar_tensor(0, int64), n);
    } else {
      const Tensor shape = options.replace ? dims : ops::expand_dims(n, 0);
      drawn = ops::random_uniform({key(what, {shape, t}), shape, float64, device}, options.replace ? 0 : 0x1p-60, 1);
    }
    if (k.defined() && (k.symbolic() || n.symbolic()))
      drawn = ops::checked(drawn, ops::broadcast_to(ops::number_like(0, drawn), dims),
                           [what](const TensorSpec& all, const TensorSpec& wanted) {
                             if (all.known() && wanted.known()) check_enough(what, wanted.numel(), all.dims[0]);
                           });
    const Tensors parameters = numbers ? Tensors() : Tensors(t);
    return from_draws({drawn}, parameters, [&](const Tensors& d) {
      Tensor at = d[0];
      if (weighted && options.replace) {
        const Tensor sums = ops::cumsum(p, 0);
        // Not beyond the last positive probability, up to which the sum is the whole one.
        at = ops::searchsorted(sums, at * slice_along(sums, 0, -1, None), ops::Side::right);
      } else if (!options.replace) {  // the largest of log(p) with Gumbel noise are draws one after another
        const Tensor scores = weighted ? ops::log(p) + gumbel_of(at) : at;
        const Tensor first = ops::argsort(scores, 0, /*descending=*/true);
        at = ops::reshape(ops::slice_from(first, {0}, {k}), dims);
      }
      return numbers ? at : ops::gather(t, at, axis);
    });
  });
}

const Generator& shared() {
  static const Generator generator{detail::Global()};
  return generator;
}
Tensor random(const Dims& size, DType dtype) { return shared().random(size, dtype); }
Tensor uniform(const Operand& low, const Operand& high, const Dims& size, DType dtype) {
  return shared().uniform(low, high, size, dtype);
}
Tensor normal(const Operand& loc, const Operand& scale, const Dims& size, DType dtype) {
  return shared().normal(loc, scale, size, dtype);
}
Tensor standard_normal(const Dims& size, DType dtype) { return shared().standard_normal(size, dtype); }
Tensor integers(const Scalar& low, const Scalar& high, const Dims& size, const IntegersOptions& options) {
  return shared().integers(low, high, size, options);
}
Tensor exponential(const Operand& scale, const Dims& size, DType dtype) {
  return shared().exponential(scale, size, dtype);
}
Tensor laplace(const Operand& loc, const Operand& scale, const Dims& size, DType dtype) {
  return shared().laplace(loc, scale, size, dtype);
}
Tensor gumbel(const Operand& loc, const Operand& scale, const Dims& size, DType dtype) {
  return shared().gumbel(loc, scale, size, dtype);
}
Tensor multivariate_normal(const Operand& mean, const Operand& cov, const Dims& size) {
  return shared().multivariate_normal(mean, cov, size);
}
Tensor gamma(const Operand& shape, const Operand& scale, const Dims& size, DType dtype) {
  return shared().gamma(shape, scale, size, dtype);
}
Tensor beta(const Operand& a, const Operand& b, const Dims& size, DType dtype) {
  return shared().beta(a, b, size, dtype);
}
Tensor dirichlet(const Operand& alpha, const Dims& size, DType dtype) { return shared().dirichlet(alpha, size, dtype); }
Tensor poisson(const Operand& lam, const Dims& size) { return shared().poisson(lam, size); }
Tensor binomial(const Operand& n, const Operand& p, const Dims& size) { return shared().binomial(n, p, size); }
Tensor bernoulli(const Operand& p, const Dims& size) { return shared().bernoulli(p, size); }
Tensor categorical(const Operand& logits, const Dims& size) { return shared().categorical(logits, size); }
Tensor permutation(const Operand& x) { return shared().permutation(x); }
Tensor shuffle(const Operand& x, int axis) { return shared().shuffle(x, axis); }
Tensor choice(const Operand& x, const Dims& size, const ChoiceOptions& options) {
  return shared().choice(x, size, options);
}

}  // namespace random
}  // namespace numpy
}  // namespace kassette
