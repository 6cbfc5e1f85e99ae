// nn_backend/numpy/distributions.cpp - distributions of np::random that are functions of others' draws.
#include <kassette/numpy/random.h>

#include <cmath>
#include <numbers>

#include "core/text.h"
#include "nn_backend/numpy/draws.h"
#include "ops/random/rejection.h"
#include "ops/reduce/reduce.h"
#include "ops/reduce/scan.h"
#include "ops/shape/shaping.h"

namespace kassette {
namespace numpy {
namespace random {

using ops::attribute_errors;

Tensor Generator::lognormal(const Operand& mean, const Operand& sigma, const Dims& size, DType dtype) const {
  return attribute_errors("lognormal", [&] {
    check_not_negative(sigma, {"lognormal", "sigma"});
    const Parameters p("lognormal", {{"mean", mean}, {"sigma", sigma}}, size, dtype);
    const Tensor z = ops::random_normal(p.draw(key("lognormal", p.inputs()), p.dtype));
    return p.fitting(from_draws({z}, p.at, [&](const Tensors& d) { return ops::exp(p.at[0] + p.at[1] * d[0]); }));
  });
}
Tensor Generator::logistic(const Operand& loc, const Operand& scale, const Dims& size, DType dtype) const {
  return attribute_errors("logistic", [&] {
    check_not_negative(scale, {"logistic", "scale"});
    const Parameters p("logistic", {{"loc", loc}, {"scale", scale}}, size, dtype);
    const Tensor u = ops::random_uniform(p.draw(key("logistic", p.inputs()), wide(p.dtype)), kLeast, 1);
    return p.fitting(from_draws({u}, p.at, [&](const Tensors& d) {
      return p.at[0] + p.at[1] * ops::cast(ops::log(d[0]) + exponential_of(d[0]), p.dtype);
    }));
  });
}
Tensor Generator::rayleigh(const Operand& scale, const Dims& size, DType dtype) const {
  return attribute_errors("rayleigh", [&] {
    check_not_negative(scale, {"rayleigh", "scale"});
    const Parameters p("rayleigh", {{"scale", scale}}, size, dtype);
    const Tensor u = ops::random_uniform(p.draw(key("rayleigh", p.inputs()), wide(p.dtype)));
    return p.fitting(from_draws({u}, p.at, [&](const Tensors& d) {
      return p.at[0] * ops::cast(ops::square_root(exponential_of(d[0]) * 2), p.dtype);
    }));
  });
}
Tensor Generator::weibull(const Operand& a, const Dims& size, DType dtype) const {
  return attribute_errors("weibull", [&] {
    check_not_negative(a, {"weibull", "a"});
    const Parameters p("weibull", {{"a", a}}, size, dtype);
    const Tensor u = ops::random_uniform(p.draw(key("weibull", p.inputs()), wide(p.dtype)), kLeast, 1);
    return p.fitting(from_draws({u}, p.at, [&](const Tensors& d) {
      return ops::cast(ops::pow(-ops::log(d[0]), 1 / ops::cast(p.at[0], wide(p.dtype))), p.dtype);
    }));
  });
}
Tensor Generator::pareto(const Operand& a, const Dims& size, DType dtype) const {
  return attribute_errors("pareto", [&] {
    check_not_negative(a, {"pareto", "a"});
    const Parameters p("pareto", {{"a", a}}, size, dtype);
    const Tensor u = ops::random_uniform(p.draw(key("pareto", p.inputs()), wide(p.dtype)));
    return p.fitting(from_draws({u}, p.at, [&](const Tensors& d) {
      return ops::cast(ops::expm1(exponential_of(d[0]) / ops::cast(p.at[0], wide(p.dtype))), p.dtype);
    }));
  });
}
Tensor Generator::standard_cauchy(const Dims& size, DType dtype) const {
  return attribute_errors("standard_cauchy", [&] {
    const Tensor dims = plain_dims("standard_cauchy", size);
    const DType of = sample_dtype("standard_cauchy", dtype, ops::default_float());
    const Tensor u = ops::random_uniform({key("standard_cauchy", {dims}), dims, wide(of)}, kLeast, 1);
    return from_draws({u}, {},
                      [&](const Tensors& d) { return ops::cast(ops::tan((d[0] - 0.5) * std::numbers::pi), of); });
  });
}
Tensor Generator::chisquare(const Operand& df, const Dims& size, DType dtype) const {
  return attribute_errors("chisquare", [&] {
    check_not_negative(df, {"chisquare", "df"});
    const Parameters p("chisquare", {{"df", df}}, size, dtype);
    const Tensor half = ops::cast(p.at[0], float64) * 0.5;
    const Tensor g = ops::random_rejection(key("chisquare", p.inputs()), p.dims, ops::RejectionLaw::gamma, half, half);
    return p.fitting(from_draws({g}, {}, [&](const Tensors& d) { return ops::cast(d[0] * 2, p.dtype); }));
  });
}
Tensor Generator::geometric(const Operand& p, const Dims& size) const {
  return attribute_errors("geometric", [&] {
    check_probability(p, {"geometric", "p"});
    const Parameters all("geometric", {{"p", p}}, size, float64);
    const Tensor u = ops::random_uniform(all.draw(key("geometric", all.inputs()), float64));
    return all.fitting(from_draws({u}, {}, [&](const Tensors& d) {
      // In float64, in which a probability of 1 gives 0 trials before rounding up.
      const Tensor trials = ops::ceil(exponential_of(d[0]) / exponential_of(all.at[0]));
      return ops::cast(ops::maximum(trials, 1), int64);
    }));
  });
}
Tensor Generator::multinomial(std::int64_t n, const Operand& pvals, const Dims& size) const {
  constexpr const char* kWhat = "multinomial";
  return attribute_errors(kWhat, [&] {
    if (n < 0) fail<ValueError>({kWhat, "n"}, "is ", n, kExpected, "it must be at least 0");
    const Tensor p = ops::cast(ArrayArg(pvals, {kWhat, "pvals"}), float64);
    if (known_rank(p, {kWhat, "pvals"}) != 1)
      fail<ValueError>({kWhat, "pvals"}, "has shape ", p.shape(), kExpected, "it must be a vector");
    const std::int64_t classes = known_size(p, 0, {kWhat, "pvals"});
    if (classes == 0) fail<ValueError>({kWhat, "pvals"}, "is empty", kExpected, "there must be a class");
    const Tensor each = ops::expand_dims(ops::scalar_tensor(n, int64), 0);
    const Tensor dims = ops::concatenate({ops::cast(plain_dims(kWhat, size), int64), each}, 0);
    const Tensor u = ops::random_uniform({key(kWhat, {dims, p}), dims, float64, p.device()});
    return from_draws({u}, {}, [&](const Tensors& d) {
      // How many of the uniform numbers are below each running sum of the probabilities.
      const Tensor sums = ops::cumsum(p, 0);
      Tensors counts;
      Tensor below;
      for (std::int64_t i = 0; i < classes; ++i) {
        const Tensor up_to = i == classes - 1 ? ops::greater_equal(d[0], 0) : ops::less(d[0], sums[i]);
        const Tensor now = ops::sum(ops::cast(up_to, int64), -1);
        counts.push_back(i ? now - below : now);
        below = now;
      }
      return ops::stack(counts, -1);
    });
  });
}

Tensor lognormal(const Operand& mean, const Operand& sigma, const Dims& size, DType dtype) {
  return shared().lognormal(mean, sigma, size, dtype);
}
Tensor logistic(const Operand& loc, const Operand& scale, const Dims& size, DType dtype) {
  return shared().logistic(loc, scale, size, dtype);
}
Tensor rayleigh(const Operand& scale, const Dims& size, DType dtype) { return shared().rayleigh(scale, size, dtype); }
Tensor weibull(const Operand& a, const Dims& size, DType dtype) { return shared().weibull(a, size, dtype); }
Tensor pareto(const Operand& a, const Dims& size, DType dtype) { return shared().pareto(a, size, dtype); }
Tensor standard_cauchy(const Dims& size, DType dtype) { return shared().standard_cauchy(size, dtype); }
Tensor chisquare(const Operand& df, const Dims& size, DType dtype) { return shared().chisquare(df, size, dtype); }
Tensor geometric(const Operand& p, const Dims& size) { return shared().geometric(p, size); }
Tensor multinomial(std::int64_t n, const Operand& pvals, const Dims& size) {
  return shared().multinomial(n, pvals, size);
}

}  // namespace random
}  // namespace numpy
}  // namespace kassette
