// tests/fuzz/play_program.cpp - runs a program: what each instruction is in functions of K, its loss, and its inputs.
#include "tests/fuzz/programs.h"

#include <kassette/numpy.h>

#include <cmath>

namespace kassette::test {
namespace K = kassette::backend;
namespace np = kassette::numpy;
namespace {

class Player {
 public:
  Player(const Program& p, const Playing& how) : p_(p), how_(how) {}

  std::vector<Tensor> run(const Block& b, std::vector<Tensor> env) {
    for (const Instruction& i : b.code)
      for (Tensor& t : run(i, env)) env.push_back(std::move(t));
    return env;
  }
  /// With what is seen from outside.
  Tensors results(const Block& b, const std::vector<Tensor>& outer, const Tensors& arguments) {
    std::vector<Tensor> env(outer.begin(), outer.begin() + b.first);
    for (const Tensor& t : arguments) env.push_back(t);
    env = run(b, std::move(env));
    Tensors out;
    for (int r : b.results) out.push_back(env[static_cast<std::size_t>(r)]);
    return out;
  }

 private:
  Tensor number(double c) const { return K::constant(c, p_.dtype); }

  static Tensor unary(int op, const Tensor& x) {
    switch (op) {
      case 0: return K::tanh(x);
      case 1: return K::sigmoid(x);
      case 2: return K::softsign(x);
      case 3: return K::sin(x);
      case 4: return K::cos(x);
      case 5: return K::square(K::tanh(x));
      case 6: return -x;
      case 7: return x * 0.5;
      case 8: return K::softplus(x);
      case 9: return K::exp(-K::square(x));
      case 10: return K::sqrt(K::square(x) + 1.0);
      case 11: return K::identity(x);
      case 12: return np::erf(x);
      case 13: return np::arctan(x);
      case 14: return np::log1p(np::square(x));
      case 15: return np::sinh(np::tanh(x));
      case 16: return K::relu(x);
      case 17: return K::abs(x);
      case 18: return K::elu(x);
      case 19: return K::clip(x, -0.3, 0.4);
      case 20: return K::maximum(x, 0.0);
      case 21: return K::softmax(x);
      case 22: return K::reverse(x, -1);
      case 23: return K::cumsum(x, -1);
      case 24: return np::logcumsumexp(x, -1);
      case 25: return np::roll(x, 2, -1);
      case 26: return np::sort(x, -1);
      case 27: return np::cummax(x, -1).values;
      case 28: return K::stop_gradient(x);
      case 29: return K::round(x * 3.0);
      case 30: return K::sign(x);
      default: return K::log(K::square(x) + 1.5);
    }
  }
  static Tensor binary(int op, const Tensor& a, const Tensor& b) {
    switch (op) {
      case 0: return a + b;
      case 1: return a - b;
      case 2: return a * b;
      case 3: return a / (K::square(b) + 1.0);
      case 4: return K::tanh(a) * K::sigmoid(b);
      case 5: return np::logaddexp(a, b);
      case 6: return np::arctan2(a, K::square(b) + 0.5);
      case 7: return np::hypot(a, K::square(b) + 0.5);
      case 8: return K::maximum(a, b);
      default: return K::minimum(a, b);
    }
  }

  Tensors run(const Instruction& i, const std::vector<Tensor>& env) {
    auto at = [&](std::size_t k) -> const Tensor& { return env[static_cast<std::size_t>(i.in[k])]; };
    auto n = [&](std::size_t k) { return i.numbers[k]; };
    switch (i.kind) {
      case Kind::unary: return unary(n(0), at(0));
      case Kind::binary: return binary(n(0), at(0), at(1));
      case Kind::number:
        return n(0) == 0   ? at(0) + i.constant
               : n(0) == 1 ? i.constant - at(0)
               : n(0) == 2 ? at(0) * i.constant
                           : i.constant / (K::square(at(0)) + 1.0);
      case Kind::reduce:
        return n(0) == 0   ? K::sum(at(0), n(1), n(2))
               : n(0) == 1 ? K::mean(at(0), n(1), n(2))
                           : K::max(at(0), n(1), n(2));
      case Kind::reduce_all: return n(0) ? K::tanh(K::sum(at(0))) : K::tanh(K::sum(K::square(at(0))));
      case Kind::mean_free: return at(0) - K::mean(at(0), -1, true);
      case Kind::dot: return K::dot(at(0), at(1));
      case Kind::conv: return K::conv1d(at(0), at(1), 1, "same");
      case Kind::slice: return at(0)(kassette::ellipsis, kassette::slice(n(0), n(1)));
      case Kind::concatenate: return K::concatenate({at(0), at(1)});
      case Kind::gather: {
        Tensor index = K::cast(at(1), "int32");
        if (!n(0)) index = K::clip(K::cast(K::clip(at(1) * 2.0 + 1.5, 0.0, 3.0), "int32"), 0, 3);
        return K::gather(at(0), index);
      }
      case Kind::permute:
        return K::ndim(at(0)) == 2 ? K::permute_dimensions(at(0), {1, 0}) : K::permute_dimensions(at(0), {1, 0, 2});
      case Kind::dropout:
        if (n(0) == 0) return K::dropout(at(0), 0.4, K::None, n(1));
        if (n(0) == 1) return at(0) * K::random_uniform({}, 0.5, 1.5, p_.dtype, n(1));
        return at(0) + K::random_normal(K::shape(at(0)), 0.0, 0.1, p_.dtype, n(1));
      case Kind::where: return K::switch_(at(0) > i.constant, at(0) * 0.5, at(1));
      case Kind::cast:
        if (n(0) == 2) return K::cast(K::cast(K::clip(at(0) * 4.0, -9.0, 9.0), "int32"), p_.dtype);
        return K::cast(K::cast(at(0), n(0) ? "float32" : "float64"), p_.dtype);
      case Kind::head: return K::sum(at(0)(kassette::slice(0, 1)), 0) + at(0)(-1);
      case Kind::sequence: {
        Tensor along = at(1);
        while (K::ndim(along) > 1) along = K::sum(along, -1);
        for (int k = 0; k < K::ndim(at(0)); ++k) along = K::expand_dims(along, -1);
        return K::tanh(along) + at(0);
      }
      case Kind::branch:
        return K::switch_(
            K::mean(at(0)) > i.constant, [&] { return results(i.blocks[0], env, {})[0]; },
            [&] { return results(i.blocks[1], env, {})[0]; });
      case Kind::phase:
        return K::in_train_phase([&] { return results(i.blocks[0], env, {})[0]; },
                                 [&] { return results(i.blocks[1], env, {})[0]; });
      case Kind::fold: {
        auto body = [&](const Tensor& state, const Tensor& x) { return results(i.blocks[0], env, {state, x})[0]; };
        const Tensor none;
        return checkpointed(n(1), [&] {
          if (i.in.size() == 1) return n(0) ? K::foldl(body, at(0)) : K::foldr(body, at(0));
          return n(0) ? K::foldl(body, at(0), at(1)) : K::foldr(body, at(0), at(1));
        });
      }
      case Kind::map: {
        Tensors xs;
        for (std::size_t k = 0; k < i.in.size(); ++k) xs.push_back(at(k));
        return checkpointed(n(0), [&] {
          return K::map_fn([&](const Tensors& e) { return results(i.blocks[0], env, e)[0]; }, xs, K::None, p_.dtype);
        });
      }
      case Kind::rnn: return rnn(i, env);
      case Kind::call: return call(i, env);
      case Kind::print: return K::print_tensor(at(0));
      case Kind::ragged: {
        Tensor count =
            K::cast(K::clip(K::abs(K::sum(K::clip(at(1), -5.0, 5.0))) * 2.0, 0.0, static_cast<double>(n(0))), "int32");
        return K::slice(at(0), first_rows(at(0), nullptr), first_rows(at(0), &count));
      }
      case Kind::gradient: {
        const Tensor g = K::gradients(K::sum(K::square(at(0))), {at(1)})[0];
        return g.defined() ? K::tanh(g) : at(1) * 0.0;
      }
      case Kind::matmul: return K::tanh(np::matmul(at(0), np::matrix_transpose(at(0))));
      case Kind::vecdot: return np::einsum("...i,...i->...", {at(0), at(1)});
      case Kind::take: return np::take(at(0), std::vector<int>{n(0) - 1, 0, n(1), 0}, -1);
      case Kind::put: {
        const auto place = at(0).at(kassette::ellipsis, n(1));
        const Operand value = i.in.size() > 1 ? Operand(at(1)) : Operand(i.constant);
        return n(0) == 0 ? place.set(value) : n(0) == 1 ? place.add(value) : place.multiply(value);
      }
      case Kind::solve:
        return np::linalg::solve(2.0 * np::eye(n(0), K::None, 0, p_.dtype) + 0.5 * K::tanh(at(0)) / n(0), at(1));
      case Kind::diff: return np::diff(at(0));
      case Kind::top_k: return np::top_k(at(0), n(0)).values;
    }
    return {};
  }
  /// Where a slice of rows begins, or, with a count, how far it goes.
  static std::vector<Dim> first_rows(const Tensor& x, const Tensor* count) {
    std::vector<Dim> dims;
    for (int k = 0; k < K::ndim(x); ++k) dims.push_back(k == 0 && count ? Dim(*count) : Dim(count ? -1 : 0));
    return dims;
  }

  template <class F>
  static Tensors checkpointed(int steps, F f) {
    if (steps < 0) return f();
    auto scope = K::checkpoint_steps(steps);
    return f();
  }

  static bool known_time(const Tensor& x, int axis) {
    const Extent time = x.shape()[axis];
    return time.known() && std::int64_t(time) > 0;
  }

  Tensors rnn(const Instruction& i, const std::vector<Tensor>& env) {
    const int nx = i.numbers[0], ns = i.numbers[1];
    const bool constant = i.numbers[2], mask = i.numbers[3], time_major = i.numbers[6];
    Tensors xs, states;
    auto at = [&](int k) { return env[static_cast<std::size_t>(i.in[static_cast<std::size_t>(k)])]; };
    for (int k = 0; k < nx; ++k) xs.push_back(at(k));
    for (int k = 0; k < ns; ++k) states.push_back(at(nx + k));
    K::RnnOptions o;
    o.go_backwards = i.numbers[4];
    o.unroll = i.numbers[5] && known_time(xs[0], time_major ? 0 : 1);
    o.time_major = time_major;
    o.zero_output_for_mask = i.numbers[7];
    if (constant) o.constants = {at(nx + ns)};
    if (mask) {
      Tensor m = xs[0];
      while (K::ndim(m) > 2) m = K::mean(m, -1);
      o.mask = m > -0.05;
    }
    auto step = [&](const Tensors& x, const Tensors& s) {
      Tensors arguments = x;
      for (const Tensor& t : s) arguments.push_back(t);
      Tensors out = results(i.blocks[0], env, arguments);
      Tensors next;
      for (std::int64_t k = 1; k < out.size(); ++k) next.push_back(out[k]);
      return K::Step{out[0], next};
    };
    return checkpointed(i.numbers[8], [&] {
      K::RnnResult r = K::rnn(step, xs, states, o);
      Tensors all{r.last_output, r.outputs};
      for (const Tensor& t : r.new_states) all.push_back(t);
      return all;
    });
  }

  Tensors call(const Instruction& i, const std::vector<Tensor>& env) {
    const Block& b = i.blocks[0];
    Tensors given{env[static_cast<std::size_t>(i.in[0])], env[static_cast<std::size_t>(i.in[1])]};
    if (!how_.functions) return results(b, env, given);
    // What its code sees is an input too, but for the weights.
    Tensors placeholders, feeds;
    auto input = [&](const Tensor& t) {
      feeds.push_back(t);
      placeholders.push_back(how_.unknown ? K::placeholder(K::None, K::ndim(t), p_.dtype)
                                          : K::placeholder(t.shape(), K::None, p_.dtype));
      return placeholders[placeholders.size() - 1];
    };
    std::vector<Tensor> seen = env;
    for (std::size_t k = 0; k < seen.size(); ++k)
      if (k < p_.inputs.size() || k >= p_.inputs.size() + p_.weights.size()) seen[k] = input(seen[k]);
    Tensors arguments;
    for (const Tensor& t : given) arguments.push_back(input(t));
    auto f = K::function(placeholders, results(b, seen, arguments));
    return f(feeds);
  }

  const Program& p_;
  const Playing how_;
};

}  // namespace

Tensors play(const Program& p, const Tensors& values, const Playing& how, Tensors* changed) {
  Player player(p, how);
  std::vector<Tensor> env = player.run(p.body, std::vector<Tensor>(values.begin(), values.end()));
  if (changed)
    for (const Change& c : p.changes) changed->push_back(env[static_cast<std::size_t>(c.value)]);
  Tensors results;
  for (int r : p.body.results) results.push_back(env[static_cast<std::size_t>(r)]);
  return results;
}

Tensor loss_of(const Program& p, const Tensors& results) {
  Tensor loss;
  for (std::int64_t i = 0; i < results.size(); ++i) {
    const int how = p.losses[static_cast<std::size_t>(i)];
    Tensor part = how == 0   ? K::sum(results[i])
                  : how == 1 ? K::mean(K::square(results[i]))
                             : K::sum(K::sin(results[i] + 0.3 * static_cast<double>(i)));
    loss = loss.defined() ? loss + part : part;
  }
  return loss;
}

Tensors values_for(const Program& p, const Sizes& sizes, int which, std::int64_t bad) {
  Tensors all;
  std::uint64_t state = p.seed * 977 + static_cast<std::uint64_t>(which) * 131 + 5;
  for (std::size_t i = 0; i < p.inputs.size() + p.weights.size(); ++i) {
    const bool input = i < p.inputs.size();
    const Type& t = input ? p.inputs[i] : p.weights[i - p.inputs.size()];
    if (!input && which) state = p.seed * 977 + 71 * i;  // other feeds, the same weights
    std::vector<std::int64_t> shape;
    std::int64_t n = 1;
    for (int d : t) {
      shape.push_back(d == kBatch ? sizes.batch : d == kTime ? sizes.time : d);
      n *= shape.back();
    }
    if (!input) state = p.seed * 977 + 71 * i;
    std::vector<double> v;
    for (std::int64_t k = 0; k < n; ++k) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      const double unit = static_cast<double>(state >> 11) * 0x1p-53;
      if (static_cast<int>(i) == p.indices) v.push_back(k == bad ? 9 : std::floor(unit * 4));
      else v.push_back(2 * unit - 1);
    }
    all.push_back(K::reshape(K::constant(v, p.dtype, {n}), shape));
  }
  return all;
}

}  // namespace kassette::test
