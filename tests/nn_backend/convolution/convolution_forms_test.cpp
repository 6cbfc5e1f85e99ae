// tests/nn_backend/convolution/convolution_forms_test.cpp - the convolution family with unknown sizes, inside
// functions, loops and branches, and on any number of threads.
#include <kassette/backend.h>
#include <kassette/error.h>

#include <vector>

#include "tests/catch.h"
#include "tests/ops/levels.h"
#include "tests/results.h"
#include "tests/sweeps/sample.h"

namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::test;

namespace {

Tensor drawn(const std::vector<std::int64_t>& shape, std::uint64_t seed, DType dtype = float64) {
  std::size_t n = 1;
  for (std::int64_t d : shape) n *= static_cast<std::size_t>(d);
  return K::variable(K::cast(f64(numbers(n, seed), shape), dtype), dtype);
}
/// Each result has the bits that it is expected to have.
void check_bits(const Tensors& got, const Tensors& expected) {
  REQUIRE(got.size() == expected.size());
  for (std::int64_t i = 0; i < got.size(); ++i) CHECK(same_bits(K::eval(got[i]), K::eval(expected[i])));
}
Tensors with_gradients(const Tensor& y, const Tensors& by) {
  Tensors all{y};
  for (const Tensor& g : K::gradients(K::sum(y * y), by)) all.push_back(g);
  return all;
}

}  // namespace

TEST_CASE("output_shape of a transposed convolution is numbers, with a batch of None, a tensor, or both mixed",
          "[conv]") {
  Tensor x = drawn({2, 3, 4, 2}, 1), w = drawn({3, 2, 5, 2}, 2), z = drawn({2, 2, 3, 4}, 3),
         x3 = drawn({2, 2, 3, 2, 2}, 4), w3 = drawn({2, 3, 2, 4, 2}, 5);
  const Tensor y = K::conv2d_transpose(x, w, {2, 6, 7, 5}, 2, "same"),
               first = K::conv2d_transpose(z, w, {2, 5, 5, 8}, 2, "same", "channels_first");
  const Tensor y3 = K::conv3d_transpose(x3, w3, {2, 4, 5, 4, 4}, 2, "same");
  Tensor n = K::constant(7, "int32"), one = K::constant({2, 6, 7, 5}, "int32"),
         wide = K::constant({2, 6, 7, 5}, "int64");
  check_bits(
      {K::conv2d_transpose(x, w, {None, 6, 7, 5}, 2, "same"), K::conv2d_transpose(x, w, one, 2, "same"),
       K::conv2d_transpose(x, w, wide, 2, "same"), K::conv2d_transpose(x, w, {K::shape(x)[0], 6, n, 5}, 2, "same"),
       K::conv2d_transpose(z, w, {None, 5, 5, 8}, 2, "same", "channels_first"),
       K::conv3d_transpose(x3, w3, {None, 4, 5, 4, 4}, 2, "same"),
       K::conv3d_transpose(x3, w3, K::constant({2, 4, 5, 4, 4}, "int32"), 2, "same")},
      {y, y, y, y, first, y3, y3});

  // On placeholders: a shape that is fed, a batch of None, sizes that follow those of x.
  Tensor p = K::placeholder({None, None, None, 2}, None, "float64"), s = K::placeholder({4}, None, "int32"),
         whole = K::placeholder(None, None, "float64");
  Tensor fed = K::conv2d_transpose(p, w, s, 2, "same"), none = K::conv2d_transpose(p, w, {None, 6, 7, 5}, 2, "same");
  Tensor grown = K::conv2d_transpose(p, w, {K::shape(p)[0], 2 * K::shape(p)[1], 2 * K::shape(p)[2] - 1, 5}, 2, "same");
  Tensor of_unknown_rank = K::conv2d_transpose(whole, w, {None, 6, 7, 5}, 2, "same");
  CHECK(K::int_shape(none) == Shape{-1, 6, 7, 5});
  CHECK(K::int_shape(of_unknown_rank) == Shape{-1, 6, 7, 5});
  CHECK(K::int_shape(fed) == Shape{-1, -1, -1, 5});
  CHECK(K::int_shape(grown) == Shape{-1, -1, -1, 5});
  CHECK(K::int_shape(K::conv2d_transpose(p, w, {2, 6, 7, 5}, 2, "same")) == Shape{2, 6, 7, 5});
  check_bits(K::function({p, s}, {fed, none, grown})({x, one}), {y, y, y});
  check_bits(K::function({whole}, {of_unknown_rank})({x}), {y});
  check_bits(K::function({p, s}, with_gradients(fed, {p, w}))({x, one}), with_gradients(y, {x, w}));
  // The same function at another size, and where the fed shape does not fit.
  Tensor small = drawn({1, 2, 2, 2}, 6);
  check_bits(K::function({p, s}, {fed})({small, K::constant({1, 3, 4, 5}, "int32")}),
             {K::conv2d_transpose(small, w, {1, 3, 4, 5}, 2, "same")});
  const char* line =
      "conv2d_transpose: output_shape (2, 9, 7, 5) for x (2, 3, 4, 2) and a kernel (3, 2, 5, 2): a convolution of 9 elements with this stride and "
      "padding gives 5, x has 3";
  CHECK(error_of<ValueError>([&] { K::conv2d_transpose(x, w, {2, 9, 7, 5}, 2, "same"); }) == line);
  CHECK(error_of<ValueError>([&] { K::function({p, s}, {fed})({x, K::constant({2, 9, 7, 5}, "int32")}); }) == line);
  CHECK_THROWS_AS(K::conv2d_transpose(x, w, K::constant({2.0, 6.0, 7.0, 5.0}), 2, "same"), Error);
}

TEST_CASE("one function of unknown sizes runs at many, with the bits of eager calls", "[conv]") {
  Tensor p = K::placeholder({None, None, None, 3}, None, "float64"), w = drawn({3, 2, 3, 4}, 1),
         d = drawn({2, 3, 3, 2}, 2);
  auto all = [&](const Tensor& x) {
    Tensor y = K::pool2d(K::relu(K::conv2d(x, w, {2, 1}, "same")), 2, 2, "same");
    Tensor deep = K::pool2d(K::depthwise_conv2d(x, d), {2, 1}, 1, "valid", None, "avg"),
           wide = K::resize_images(x, 2, 3, "channels_last", "bilinear");
    Tensors out{y, deep, wide, K::resize_images(x, 1, 2, "channels_last"), K::spatial_2d_padding(x, {{1, 0}, {2, 3}})};
    for (const Tensor& g : K::gradients(K::sum(y * y) + K::sum(deep * deep) + K::sum(wide * wide), {x, w, d}))
      out.push_back(g);
    return out;
  };
  Function f = K::function({p}, all(p));
  for (const std::vector<std::int64_t>& shape :
       {std::vector<std::int64_t>{2, 7, 5, 3}, {1, 3, 3, 3}, {4, 4, 11, 3}, {3, 6, 4, 3}}) {
    Tensor x = drawn(shape, 3);
    check_bits(f({x}), all(x));
  }
  Tensor k = K::placeholder({None, 2, 3, None});  // the sizes of the kernel are not known
  CHECK(K::int_shape(K::conv2d(K::ones({2, 9, 7, 3}), k)) == Shape{2, -1, 6, -1});
  CHECK(K::int_shape(K::conv2d(K::ones({2, 9, 7, 3}), k, 2, "same")) == Shape{2, 5, 4, -1});
  CHECK(K::int_shape(K::conv2d(p, w, 2)) == Shape{-1, -1, -1, 4});
  CHECK(K::int_shape(K::conv2d(K::placeholder({None, 9, None, 3}), K::ones({3, 2, 3, 4}), 2)) == Shape{-1, 4, -1, 4});
  CHECK(K::int_shape(K::pool2d(K::placeholder({None, 3, 9, 8}), 2, 2, "same", "channels_first")) == Shape{-1, 3, 5, 4});
  CHECK(K::int_shape(K::conv1d(K::placeholder({2, None, 3}), K::ones({3, 3, 4}), 1, "causal")) == Shape{2, -1, 4});
  CHECK(K::int_shape(K::depthwise_conv2d(K::placeholder({None, 4, None, 5}), K::ones({3, 3, 4, 2}), 1, "same",
                                         "channels_first")) == Shape{-1, 8, -1, 5});
}

TEST_CASE("a convolution in each step of a loop is that of the whole loop", "[conv]") {
  // A recurrent convolution: state' = conv(x_t) + conv(state).
  Tensor x = drawn({2, 4, 5, 6, 2}, 1), h = drawn({2, 3, 3, 3}, 2), w = drawn({3, 3, 2, 3}, 3),
         u = drawn({2, 2, 3, 3}, 4);
  auto next = [&](const Tensor& e, const Tensor& state) {
    return K::tanh(K::pool2d(K::conv2d(e, w, 1, "same"), {3, 4}, {2, 2}, "same") + K::conv2d(state, u, 1, "same"));
  };
  Tensor state = h;
  for (int t = 0; t < 4; ++t) state = next(x(all, t), state);
  const Tensors expected = with_gradients(state, {x, h, w, u});
  auto loop = [&](const Tensor& xs, const Tensor& first) {
    return K::rnn(
               [&](const Tensor& e, const Tensors& s) {
                 Tensor y = next(e, s[0]);
                 return K::Step{y, {y}};
               },
               xs, {first})
        .last_output;
  };
  auto close = [&](const Tensors& got) {
    REQUIRE(got.size() == expected.size());
    for (std::int64_t i = 0; i < got.size(); ++i) check_close(values(got[i]), values(expected[i]), 1e-10);
  };
  close(with_gradients(loop(x, h), {x, h, w, u}));
  Tensor p = K::placeholder({None, None, 5, 6, 2}, None, "float64"),
         q = K::placeholder({None, 3, 3, 3}, None, "float64");
  close(K::function({p, q}, with_gradients(loop(p, q), {p, q, w, u}))({x, h}));
}

TEST_CASE("map_fn over images is the whole batch at once", "[conv]") {
  Tensor x = drawn({3, 2, 6, 5, 2}, 1), w = drawn({3, 2, 2, 2}, 2);
  auto of = [&](const Tensor& images) {
    Tensor y = K::pool2d(K::conv2d(images, w, 1, "same"), 2, 1, "valid", None, "avg");
    return K::resize_images(K::conv2d_transpose(y, w, {None, 7, 5, 2}, 1), 2, 1, "channels_last", "bilinear");
  };
  Tensor whole = of(K::reshape(x, {6, 6, 5, 2})), mapped = K::map_fn(of, x);
  const Tensors expected = with_gradients(K::reshape(whole, {3, 2, 14, 5, 2}), {x, w}),
                got = with_gradients(mapped, {x, w});
  for (std::int64_t i = 0; i < got.size(); ++i) check_close(values(got[i]), values(expected[i]), 1e-11);
  Tensor p = K::placeholder({None, None, 6, 5, 2}, None, "float64");
  const Tensors played = K::function({p}, with_gradients(K::map_fn(of, p), {p, w}))({x});
  for (std::int64_t i = 0; i < got.size(); ++i) check_close(values(played[i]), values(expected[i]), 1e-11);
}

TEST_CASE("branches are convolutions, and only the one that is taken has a gradient", "[conv]") {
  Tensor x = drawn({1, 5, 5, 2}, 1), w = drawn({3, 3, 2, 2}, 2);
  auto one = [&](const Tensor& e) { return K::conv2d(e, w, 1, "same"); };
  auto two = [&](const Tensor& e) { return K::pool2d(e, 3, 1, "same"); };
  Tensor c = K::placeholder({}, None, "bool"), p = K::placeholder({None, None, None, 2}, None, "float64");
  Tensor y = K::switch_(
      c, [&] { return one(p); }, [&] { return two(p); });
  Function f = K::function({c, p}, with_gradients(y, {p}));
  for (bool taken : {true, false}) {
    Tensor eager = K::switch_(
        K::constant(taken, "bool"), [&] { return one(x); }, [&] { return two(x); });
    const Tensors expected = with_gradients(taken ? one(x) : two(x), {x});
    check_bits(with_gradients(eager, {x}), expected);
    check_bits(f({K::constant(taken, "bool"), x}), expected);
  }
}

TEST_CASE("each function of the family has the same bits on 1, 2, 3 and 8 threads", "[conv][threads]") {
  using Of = Tensor (*)(const Tensor& x, const Tensor& w);
  struct Large {
    std::vector<std::int64_t> x, w;
    Of f;
  };
  const Large kLarge[] = {
      {{4, 900, 17}, {5, 17, 33}, [](const Tensor& x, const Tensor& w) { return K::conv1d(x, w, 1, "causal"); }},
      {{3, 30, 31, 19}, {3, 3, 19, 21}, [](const Tensor& x, const Tensor& w) { return K::conv2d(x, w, 1, "same"); }},
      {{3, 19, 31, 30},
       {3, 2, 19, 21},
       [](const Tensor& x, const Tensor& w) { return K::conv2d(x, w, 2, "same", "channels_first"); }},
      {{2, 40, 40, 3}, {7, 7, 3, 16}, [](const Tensor& x, const Tensor& w) { return K::conv2d(x, w, 2); }},
      {{9, 11, 13, 64}, {1, 1, 64, 100}, [](const Tensor& x, const Tensor& w) { return K::conv2d(x, w); }},
      {{2, 9, 12, 13, 7}, {3, 2, 3, 7, 11}, [](const Tensor& x, const Tensor& w) { return K::conv3d(x, w); }},
      {{2, 17, 16, 20},
       {4, 4, 9, 20},
       [](const Tensor& x, const Tensor& w) {
         return K::conv2d_transpose(x, w, {None, 34, 32, 9}, 2, "same");
       }},
      {{1, 6, 7, 8, 10},
       {3, 3, 3, 6, 10},
       [](const Tensor& x, const Tensor& w) {
         return K::conv3d_transpose(x, w, {None, 12, 14, 16, 6}, 2, "same");
       }},
      {{3, 33, 35, 24},
       {3, 3, 24, 2},
       [](const Tensor& x, const Tensor& w) { return K::depthwise_conv2d(x, w, 1, "same"); }},
      {{3, 24, 33, 35},
       {5, 3, 24, 1},
       [](const Tensor& x, const Tensor& w) { return K::depthwise_conv2d(x, w, 2, "same", "channels_first"); }},
      {{40, 30, 9}, {14, 27, 20}, [](const Tensor& x, const Tensor& w) { return K::local_conv1d(x, w, 3, 2); }},
      {{5, 41, 43, 70}, {1}, [](const Tensor& x, const Tensor& w) { return K::pool2d(x, 3, 2, "same") * w; }},
      {{5, 70, 41, 43},
       {1},
       [](const Tensor& x, const Tensor& w) {
         return K::pool2d(x, {2, 3}, 1, "valid", "channels_first", "avg") * w;
       }},
      {{2, 12, 13, 14, 30}, {1}, [](const Tensor& x, const Tensor& w) { return K::pool3d(x, 2) * w; }},
      {{3, 31, 33, 21},
       {1},
       [](const Tensor& x, const Tensor& w) {
         return K::resize_images(x, 2, 3, "channels_last", "bilinear") * K::cast(w, "float32");
       }},
      {{3, 21, 31, 33},
       {1},
       [](const Tensor& x, const Tensor& w) {
         return K::resize_images(x, 3, 2, "channels_first", "bilinear") * K::cast(w, "float32");
       }},
      {{3, 31, 33, 21},
       {1},
       [](const Tensor& x, const Tensor& w) { return K::resize_images(x, 2, 2, "channels_last") * w; }},
      {{2, 40, 41, 40}, {40}, [](const Tensor& x, const Tensor& w) { return K::bias_add(x, w); }},
  };
  at_every_level([&](devices::Level) {
    for (const Large& c : kLarge)
      for (DType dtype : {float32, float16}) {
        Tensor x = drawn(c.x, 1, dtype), w = drawn(c.w, 2, dtype);
        auto run = [&](int threads) {
          set_num_threads(threads);
          return with_gradients(c.f(x, w), {x, w});
        };
        const Tensors expected = run(1);
        for (int threads : {2, 3, 8}) {
          const Tensors got = run(threads);
          for (std::int64_t i = 0; i < got.size(); ++i)
            if (!same_bits(got[i], expected[i]))
              FAIL_CHECK("x " << x.shape() << " w " << w.shape() << " " << dtype.name() << ": result " << i << " on "
                              << threads << " threads");
        }
      }
  });
}
