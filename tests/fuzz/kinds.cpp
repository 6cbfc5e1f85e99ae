// tests/fuzz/kinds.cpp - the random calls, in one piece: they are one table, with a line for each K function.
#include <climits>
#include <cmath>

#include "tests/fuzz/calls.h"

namespace kassette::test {

namespace K = kassette::backend;

namespace {

#define UNARY(f) \
  { \
#f, [](Arguments& a, Call& call) { int x = a.any(); RUN { return {K::f(in[x])}; }; } \
  }
#define BINARY(f) \
  { \
#f, [](Arguments& a, Call& call) { int x = a.any(), y = a.like(x); RUN { return {K::f(in[x], in[y])}; }; } \
  }
#define REDUCE(f) \
  { \
#f, [](Arguments& a, Call& call) {                                                                         \
     int x = a.any();                                                                                         \
     bool all = a.all_axes(), keep = a.random.one_in(2);                                                      \
     std::vector<int> axes = a.axes();                                                                        \
     a.say(all ? ", all" : ", axes " + words(axes));                                                          \
     RUN { return {all ? K::f(in[x], K::None, keep) : K::f(in[x], axes, keep)}; };                            \
   } \
  }
#define WITH_AXIS(f) \
  { \
#f, [](Arguments& a, Call& call) {                 \
     int x = a.any(), axis = a.axis();                \
     a.say(", axis " + words(axis));                  \
     RUN { return {K::f(in[x], axis)}; };             \
   } \
  }
#define WITH_SIZES(f, result) \
  { \
#f, [](Arguments& a, Call& call) {                                                                                           \
     int x = a.any(), by = a.random.below(3), t = by == 1 ? a.shape_tensor() : x;                                               \
     std::vector<std::int64_t> n = a.sizes();                                                                                   \
     [[maybe_unused]] DType d = a.dtype();                                                                                      \
     a.say(by == 0 ? ", " + words(n) : by == 1 ? ", by a tensor" : ", by K::shape");                                            \
     RUN {                                                                                                                      \
       auto made = [&](const Dims& shape) -> Tensors { return {result}; };                                                      \
       return by == 0 ? made(n) : by == 1 ? made(in[t]) : made(K::shape(in[x]));                                                \
     };                                                                                                                         \
   } \
  }

template <class... T>
Tensors several(const Tensors& list, const T&... more) {
  Tensors all = list;
  (all.push_back(more), ...);
  return all;
}

std::vector<Kind> make_kinds() {
  return {
      UNARY(square),
      UNARY(abs),
      UNARY(sqrt),
      UNARY(exp),
      UNARY(log),
      UNARY(log1p),
      UNARY(round),
      UNARY(sign),
      UNARY(sin),
      UNARY(cos),
      UNARY(softplus),
      UNARY(softsign),
      UNARY(sigmoid),
      UNARY(hard_sigmoid),
      UNARY(tanh),
      UNARY(transpose),
      UNARY(flatten),
      UNARY(batch_flatten),
      UNARY(shape),
      UNARY(size),
      UNARY(identity),
      UNARY(stop_gradient),
      UNARY(cast_to_floatx),
      BINARY(pow),
      BINARY(maximum),
      BINARY(minimum),
      BINARY(equal),
      BINARY(not_equal),
      BINARY(greater),
      BINARY(greater_equal),
      BINARY(less),
      BINARY(less_equal),
      BINARY(binary_crossentropy),
      REDUCE(sum),
      REDUCE(prod),
      REDUCE(max),
      REDUCE(min),
      REDUCE(mean),
      REDUCE(nanmean),
      REDUCE(var),
      REDUCE(std),
      REDUCE(any),
      REDUCE(all),
      REDUCE(logsumexp),
      WITH_AXIS(argmax),
      WITH_AXIS(argmin),
      WITH_AXIS(cumsum),
      WITH_AXIS(cumprod),
      WITH_AXIS(softmax),
      WITH_AXIS(expand_dims),
      WITH_AXIS(squeeze),
      WITH_AXIS(l2_normalize),
      WITH_SIZES(reshape, K::reshape(in[x], shape)),
      WITH_SIZES(tile, K::tile(in[x], shape)),
      WITH_SIZES(zeros, K::zeros(shape, d)),
      WITH_SIZES(ones, K::ones(shape, d)),
      WITH_SIZES(eye, K::eye(shape, d)),
      {"operators",
       [](Arguments& a, Call& call) {
         int x = a.any(), y = a.like(x), which = a.random.below(12);
         a.say(", operator " + words(which));
         RUN {
           const Tensor &l = in[x], &r = in[y];
           switch (which) {
             case 0: return {l + r};
             case 1: return {l - r};
             case 2: return {l * r};
             case 3: return {l / r};
             case 4: return {l % r};
             case 5: return {l & r};
             case 6: return {l | r};
             case 7: return {-l};
             case 8: return {~l};
             case 9: return {l < r};
             case 10: return {2 - l};
             default: return {l * 3 + r};
           }
         };
       }},
      {"clip",
       [](Arguments& a, Call& call) {
         int x = a.any(), y = a.like(x), z = a.like(x);
         double low = a.number(), high = a.number();
         bool by_tensors = a.random.one_in(2);
         RUN { return {by_tensors ? K::clip(in[x], in[y], in[z]) : K::clip(in[x], low, high)}; };
       }},
      {"relu",
       [](Arguments& a, Call& call) {
         int x = a.any();
         double alpha = a.number(), most = a.number(), from = a.number();
         bool capped = a.random.one_in(2);
         a.say(", " + words(alpha) + ", " + words(most) + ", " + words(from));
         RUN { return {capped ? K::relu(in[x], alpha, most, from) : K::relu(in[x], alpha, K::None, from)}; };
       }},
      {"elu",
       [](Arguments& a, Call& call) {
         int x = a.any();
         double alpha = a.number();
         RUN { return {K::elu(in[x], alpha)}; };
       }},
      {"cast",
       [](Arguments& a, Call& call) {
         int x = a.any();
         DType d = a.dtype();
         a.say(" to " + words(d));
         RUN { return {K::cast(in[x], d)}; };
       }},
      {"zeros_like",
       [](Arguments& a, Call& call) {
         int x = a.any();
         DType d = a.dtype();
         bool one = a.random.one_in(2);
         RUN { return {one ? K::ones_like(in[x], d) : K::zeros_like(in[x], d)}; };
       }},
      {"concatenate",
       [](Arguments& a, Call& call) {
         int x = a.any(), y = a.like(x), z = a.like(x), axis = a.axis();
         a.say(", axis " + words(axis));
         RUN { return {K::concatenate({in[x], in[y], in[z]}, axis)}; };
       }},
      {"stack",
       [](Arguments& a, Call& call) {
         int x = a.any(), y = a.like(x), axis = a.axis();
         a.say(", axis " + words(axis));
         RUN { return {K::stack({in[x], in[y]}, axis)}; };
       }},
      {"permute_dimensions",
       [](Arguments& a, Call& call) {
         int x = a.any(), rank = a.shape_of(x).rank();
         std::vector<int> order;
         for (int i = 0; i < rank; ++i) order.insert(order.begin() + a.random.below(i + 1), i);
         if (a.random.one_in(5)) order = a.axes();
         a.say(", " + words(order));
         RUN { return {K::permute_dimensions(in[x], order)}; };
       }},
      {"repeat_elements",
       [](Arguments& a, Call& call) {
         int x = a.any(), n = a.count(), axis = a.axis();
         a.say(", " + words(n) + ", axis " + words(axis));
         RUN { return {K::repeat_elements(in[x], n, axis)}; };
       }},
      {"repeat",
       [](Arguments& a, Call& call) {
         int x = a.any(), n = a.count();
         a.say(", " + words(n));
         RUN { return {K::repeat(in[x], n)}; };
       }},
      {"reverse",
       [](Arguments& a, Call& call) {
         int x = a.any();
         std::vector<int> axes = a.axes();
         a.say(", " + words(axes));
         RUN { return {K::reverse(in[x], axes)}; };
       }},
      {"slice",
       [](Arguments& a, Call& call) {
         int x = a.any(), s = a.shape_tensor();
         std::vector<std::int64_t> start, size;
         for (std::int64_t n : a.shape_of(x)) {
           start.push_back(n ? a.random.below(static_cast<int>(std::min<std::int64_t>(n, 5))) : 0);
           size.push_back(a.random.one_in(4) ? -1 : a.random.below(3));
         }
         if (a.random.one_in(6)) start = a.sizes();
         if (a.random.one_in(6)) size = a.sizes();
         bool tensor = a.random.one_in(4);
         a.say(", from " + words(start) + ", " + words(size));
         RUN { return {tensor ? K::slice(in[x], in[s], size) : K::slice(in[x], start, size)}; };
       }},
      {"one_hot",
       [](Arguments& a, Call& call) {
         int x = a.random.one_in(3) ? a.any() : a.ints(5), n = a.count();
         a.say(", " + words(n));
         RUN { return {K::one_hot(in[x], n)}; };
       }},
      {"gather",
       [](Arguments& a, Call& call) {
         int x = a.any(),
             at =
                 a.ints(static_cast<int>(a.shape_of(x).rank() > 0 ? std::min<std::int64_t>(a.shape_of(x)[0], 100) : 3));
         RUN { return {K::gather(in[x], in[at])}; };
       }},
      {"index",
       [](Arguments& a, Call& call) {
         int x = a.any(), t = a.ints(3), form = a.random.below(7);
         int i = a.axis(), j = a.axis(), step = a.random.one_in(6) ? a.count() : a.random.of({1, 2, -1, -2});
         a.say(", form " + words(form) + " with " + words(i) + ", " + words(j) + ", " + words(step));
         RUN {
           const Tensor& v = in[x];
           switch (form) {
             case 0: return {v[i]};
             case 1: return {v(i, slice(j, K::None, step))};
             case 2: return {v(slice(i, j, step), ellipsis, newaxis)};
             case 3: return {v(ellipsis, in[t])};
             case 4: return {v[in[t]]};
             case 5: return {v["..., ::-1, newaxis"]};
             default: return {v(all, newaxis, in[t], slice(i, j))};
           }
         };
       }},
      {"dot",
       [](Arguments& a, Call& call) {
         int x = a.any(), y = a.matrix_beside(x);
         RUN { return {K::dot(in[x], in[y])}; };
       }},
      {"batch_dot",
       [](Arguments& a, Call& call) {
         int x = a.any(), y = a.matrix_beside(x), which = a.random.below(3), i = a.axis(), j = a.axis();
         a.say(", axes " + words(i) + ", " + words(j) + " form " + words(which));
         RUN {
           return {which == 0   ? K::batch_dot(in[x], in[y])
                   : which == 1 ? K::batch_dot(in[x], in[y], i)
                                : K::batch_dot(in[x], in[y], {i, j})};
         };
       }},
      {"categorical_crossentropy",
       [](Arguments& a, Call& call) {
         int x = a.any(), y = a.like(x), axis = a.random.one_in(2) ? -1 : a.axis();
         bool logits = a.random.one_in(2);
         a.say(", axis " + words(axis) + (logits ? " of logits" : ""));
         RUN { return {K::categorical_crossentropy(in[x], in[y], logits, axis)}; };
       }},
      {"sparse_categorical_crossentropy",
       [](Arguments& a, Call& call) {
         int y = a.any(), x = a.random.one_in(3) ? a.ints(3)
                                                 : a.with(a.shape_of(y).rank() > 0
                                                              ? Shape(a.shape_of(y).begin(), a.shape_of(y).rank() - 1)
                                                              : Shape{},
                                                          a.random.of<DType>({int32, int64, float32}));
         int axis = a.random.one_in(2) ? -1 : a.axis();
         bool logits = a.random.one_in(2);
         a.say(", axis " + words(axis) + (logits ? " of logits" : ""));
         RUN { return {K::sparse_categorical_crossentropy(in[x], in[y], logits, axis)}; };
       }},
      {"in_top_k",
       [](Arguments& a, Call& call) {
         int n = a.random.below(4);
         int x = a.random.one_in(3) ? a.any() : a.with({n, a.random.below(5)}, a.float_dtype()),
             t = a.random.one_in(3) ? a.ints(3) : a.with({n}, int32), k = a.count();
         a.say(", " + words(k));
         RUN { return {K::in_top_k(in[x], in[t], k)}; };
       }},
      {"batch_normalization",
       [](Arguments& a, Call& call) {
         int x = a.any(), axis = a.random.one_in(2) ? -1 : a.axis();
         Shape s = a.shape_of(x);
         auto parameter = [&] {
           return a.random.one_in(4)
                      ? a.like(x)
                      : a.with({s.rank() > 0 ? std::min<std::int64_t>(s[-1], 100) : 1}, call.in[x].dtype());
         };
         int m = parameter(), v = parameter(), b = parameter(), g = parameter(), which = a.random.below(4);
         a.say(", axis " + words(axis) + " form " + words(which));
         RUN {
           return {K::batch_normalization(in[x], in[m], in[v], which & 1 ? Operand(in[b]) : Operand(K::None),
                                          which & 2 ? Operand(in[g]) : Operand(K::None), axis)};
         };
       }},
      {"normalize_batch_in_training",
       [](Arguments& a, Call& call) {
         int x = a.any();
         Shape s = a.shape_of(x);
         int g = a.with({s.rank() > 0 ? std::min<std::int64_t>(s[-1], 100) : 1}, call.in[x].dtype());
         std::vector<int> axes = a.axes();
         bool plain = a.random.one_in(2);
         a.say(", axes " + words(axes));
         RUN {
           auto n = plain ? K::normalize_batch_in_training(in[x], K::None, K::None, axes)
                          : K::normalize_batch_in_training(in[x], in[g], in[g], axes);
           return {n.normalized, n.mean, n.variance};
         };
       }},
      {"ctc_batch_cost",
       [](Arguments& a, Call& call) {
         int n = a.random.below(3), time = a.random.below(5), classes = a.random.below(4), labels = a.random.below(3);
         auto lengths = [&](int most) { return a.random.one_in(4) ? a.ints(4) : a.with({n, 1}, most ? int32 : int64); };
         int y = a.random.one_in(5) ? a.any() : a.with({n, time, classes}, a.float_dtype()),
             t = a.random.one_in(5) ? a.any() : a.with({n, labels}, a.random.of<DType>({int32, float32}));
         int i = lengths(time), l = lengths(labels);
         RUN { return {K::ctc_batch_cost(in[t], in[y], K::abs(in[i]), in[l])}; };
       }},
      {"ctc_decode",
       [](Arguments& a, Call& call) {
         int n = a.random.below(3), time = a.random.below(5), classes = a.random.below(5);
         int y = a.random.one_in(5) ? a.any() : a.with({n, time, classes}, a.float_dtype()),
             l = a.random.one_in(4) ? a.ints(4) : a.with({n}, int32);
         bool greedy = a.random.one_in(2), merge = a.random.one_in(2);
         int width = a.random.one_in(6) ? a.count() : 1 + a.random.below(5),
             paths = a.random.one_in(6) ? a.count() : 1 + a.random.below(2);
         if (width > 1 << 20) width = 7;
         a.say(", " + words(greedy) + ", " + words(width) + ", " + words(paths));
         RUN {
           auto d = K::ctc_decode(in[y], in[l], greedy, width, paths, merge);
           return several(d.decoded, d.log_prob);
         };
       }},
      {"ctc_label_dense_to_sparse",
       [](Arguments& a, Call& call) {
         int n = a.random.below(4);
         int x = a.random.one_in(3) ? a.any() : a.with({n, a.random.below(4)}, int32),
             l = a.random.one_in(3) ? a.ints(4) : a.with({n}, int32);
         RUN { return {K::to_dense(K::ctc_label_dense_to_sparse(in[x], in[l]))}; };
       }},
      {"arange",
       [](Arguments& a, Call& call) {
         int s = a.with({}, a.dtype()), e = a.random.one_in(4) ? a.any() : a.with({}, a.dtype());
         DType d = a.dtype();
         double step = a.number();
         a.say(", step " + words(step) + " as " + words(d));
         RUN { return {K::arange(in[s], in[e], step, d)}; };
       }},
      {"sparse_coo",
       [](Arguments& a, Call& call) {
         int n = a.random.below(4), rank = a.random.one_in(4) ? a.random.below(9) : 2;
         int at = a.random.one_in(4) ? a.ints(3) : a.with({n, rank}, a.random.of<DType>({int32, int64})),
             v = a.random.one_in(4) ? a.any() : a.with({n}, a.dtype());
         std::vector<std::int64_t> shape(static_cast<std::size_t>(rank), 7);
         if (a.random.one_in(3)) shape = a.sizes();
         int y = a.any(), use = a.random.below(5), axis = a.axis();
         a.say(" as " + words(shape) + ", use " + words(use) + " axis " + words(axis));
         RUN {
           Tensor s = K::sparse_coo(K::abs(in[at]), in[v], shape);
           switch (use) {
             case 0: return {K::to_dense(s)};
             case 1: return {K::dot(s, in[y])};
             case 2: return {K::dot(in[y], s)};
             case 3: return {K::to_dense(K::concatenate({s, s}, axis))};
             default: return {K::to_dense(K::transpose(s))};
           }
         };
       }},
      {"sparse_csr",
       [](Arguments& a, Call& call) {
         int rows = a.random.below(4), n = a.random.below(4);
         int at = a.random.one_in(2) ? a.ints(4) : a.with({rows + 1}, int32),
             c = a.random.one_in(3) ? a.ints(3) : a.with({n}, int32), v = a.with({n}, a.dtype());
         call.only_eager = true;  // its indices are read at once
         std::vector<std::int64_t> shape{rows, 7};
         if (a.random.one_in(4)) shape = a.sizes();
         a.say(" as " + words(shape));
         RUN { return {K::to_dense(K::sparse_csr(in[at], in[c], in[v], shape))}; };
       }},
      {"to_sparse",
       [](Arguments& a, Call& call) {
         int x = a.any();
         RUN { return {K::to_dense(K::to_sparse(in[x]))}; };
       }},
      {"switch_",
       [](Arguments& a, Call& call) {
         int c = a.condition(), x = a.any();
         bool lazy = a.random.one_in(2);
         int y = lazy ? a.with(a.shape_of(x), call.in[x].dtype()) : a.like(x);  // eagerly the other branch is not run
         a.say(lazy ? ", lazy" : "");
         RUN {
           if (!lazy) return {K::switch_(in[c], in[x], in[y])};
           return {K::switch_(
               in[c],
               [&] {
                 burn();
                 return K::square(in[x]);
               },
               [&] {
                 burn();
                 return in[y] * in[y];
               })};
         };
       }},
      {"in_train_phase",
       [](Arguments& a, Call& call) {
         int c = a.with({}, a.random.of<DType>({bool_, int32, float32})), x = a.any(),
             y = a.with(a.shape_of(x), call.in[x].dtype());
         bool test = a.random.one_in(2), lazy = a.random.one_in(2);
         a.say(lazy ? ", lazy" : "");
         RUN {
           auto first = [&] {
             burn();
             return K::square(in[x]);
           };
           auto second = [&] {
             burn();
             return in[y] * in[y];
           };
           if (!lazy) return {test ? K::in_test_phase(in[x], in[y], in[c]) : K::in_train_phase(in[x], in[y], in[c])};
           return {test ? K::in_test_phase(first, second, in[c]) : K::in_train_phase(first, second, in[c])};
         };
       }},
      {"foldl",
       [](Arguments& a, Call& call) {
         a.long_axes = false;
         int x = a.any();
         Shape s = a.shape_of(x);
         // No step is run where the one element is the start.
         int y = a.random.below(s.rank() > 0 && s[0] == 1 ? 2 : 3);
         int start = a.random.one_in(4) || s.rank() < 1
                         ? a.any()
                         : a.with(Shape(s.begin() + 1, s.rank() - 1), call.in[x].dtype());
         bool right = a.random.one_in(2), started = a.random.one_in(2);
         a.say(", step " + words(y) + (right ? " from the right" : ""));
         RUN {
           auto step = [&](const Tensor& acc, const Tensor& e) -> Tensor {
             burn();
             return y == 0 ? acc + e : y == 1 ? acc * 2 - e : K::stack({acc, e});
           };
           Operand from = started ? Operand(in[start]) : Operand(K::None);
           return {right ? K::foldr(step, in[x], from) : K::foldl(step, in[x], from)};
         };
       }},
      {"map_fn",
       [](Arguments& a, Call& call) {
         a.long_axes = false;
         int x = a.any(), form = a.random.below(5), t = a.shape_tensor(), y = a.like(x);
         std::vector<std::int64_t> n = a.sizes();
         a.say(", step " + words(form) + " with " + words(n));
         RUN {
           if (form == 4)
             return {K::map_fn(
                 [&](const Tensors& e) {
                   burn();
                   return e[0] * e[1];
                 },
                 {in[x], in[y]})};
           return {K::map_fn(
               [&](const Tensor& e) -> Tensor {
                 burn();
                 return form == 0   ? e + e
                        : form == 1 ? K::reshape(e, in[t])
                        : form == 2 ? K::reshape(e, n)
                                    : K::expand_dims(K::expand_dims(e, 0), -1);
               },
               in[x])};
         };
       }},
      {"rnn",
       [](Arguments& a, Call& call) {
         a.long_axes = false;
         int n = a.random.below(3), time = a.random.below(4), width = a.random.below(4);
         DType d = a.float_dtype();
         bool major = a.random.one_in(2), back = a.random.one_in(2), unroll = a.random.one_in(4),
              zero = a.random.one_in(3), masked = a.random.one_in(2);
         int x = a.random.one_in(6) ? a.any() : a.with(major ? Shape{time, n, width} : Shape{n, time, width}, d);
         int h = a.random.one_in(6) ? a.any() : a.with({n, width}, d),
             m = a.random.one_in(6) ? a.any() : a.with(major ? Shape{time, n} : Shape{n, time}, bool_);
         int form = a.random.below(4), t = a.shape_tensor();
         a.say(", step " + words(form) + (major ? " time_major" : "") + (back ? " backwards" : "") +
               (unroll ? " unrolled" : "") + (zero ? " zero" : "") + (masked ? " masked" : ""));
         RUN {
           auto step = [&](const Tensor& e, const Tensors& s) -> K::Step {
             burn();
             Tensor next = s[0] + e;
             return {form == 0   ? next
                     : form == 1 ? K::expand_dims(next, 1)
                     : form == 2 ? K::reshape(next, in[t])
                                 : K::sum(next),
                     {next}};
           };
           auto r = K::rnn(step, {in[x]}, {in[h]}, back, masked ? Operand(in[m]) : Operand(K::None), K::None, unroll,
                           K::None, major, zero);
           Tensors all{r.last_output, r.outputs};
           for (const Tensor& s : r.new_states) all.push_back(s);
           return all;
         };
       }},
      {"random",
       [](Arguments& a, Call& call) {
         int x = a.any(), by = a.random.below(3), t = a.shape_tensor(), form = a.random.below(5);
         std::vector<std::int64_t> n = a.sizes();
         double p = a.random.one_in(3) ? a.number() : a.random.unit(), q = a.number();
         DType d = a.random.one_in(3) ? a.dtype() : a.float_dtype();
         call.draws = true;
         a.say(", " + words(d) + " form " + words(form) + ", by " + words(by) + words(n) + ", " + words(p) + ", " +
               words(q));
         RUN {
           auto draw = [&](const Dims& s) -> Tensors {
             switch (form) {
               case 0: return {K::random_normal(s, p, q, d, 3)};
               case 1: return {K::random_uniform(s, p, q, d, 3)};
               case 2: return {K::random_binomial(s, p, d, 3)};
               case 3: return {K::truncated_normal(s, p, q, d, 3)};
               default: return {K::random_uniform(s, -5, 9, d, 3)};
             }
           };
           return by == 0 ? draw(n) : by == 1 ? draw(in[t]) : draw(K::shape(in[x]));
         };
       }},
      {"dropout",
       [](Arguments& a, Call& call) {
         int x = a.any();
         double level = a.random.one_in(4) ? a.number() : a.random.unit();
         std::vector<std::int64_t> n = a.sizes();
         bool noise = a.random.one_in(2);
         call.draws = true;
         a.say(", " + words(level) + (noise ? ", " + words(n) : ""));
         RUN { return {noise ? K::dropout(in[x], level, n, 3) : K::dropout(in[x], level, K::None, 3)}; };
       }},
      {"variables",
       [](Arguments& a, Call& call) {
         int x = a.any(), y = a.like(x), form = a.random.below(6);
         double momentum = a.number();
         call.only_eager = true;
         a.say(", form " + words(form));
         RUN {
           Tensor v = K::variable(in[x], in[x].dtype());
           Tensor alias = v + K::zeros_like(v, v.dtype());
           switch (form) {
             case 0: K::update(v, in[y]); break;
             case 1: K::update_add(v, in[y]); break;
             case 2: K::update_sub(v, v); break;
             case 3: K::moving_average_update(v, in[y], momentum); break;
             case 4: K::set_value(v, in[y]); break;
             default: K::batch_set_value({v, v}, {in[y], in[x]}); break;
           }
           return several(K::batch_get_value({v, alias}), K::get_value(v), K::eval(v * 2));
         };
       }},
      {"creation",
       [](Arguments& a, Call& call) {
         int x = a.any(), form = a.random.below(4);
         std::vector<std::int64_t> n = a.sizes();
         DType d = a.dtype();
         double low = a.number(), high = a.number();
         call.only_eager = call.draws = true;
         a.say(", form " + words(form) + ", " + words(n) + " " + words(d));
         RUN {
           switch (form) {
             case 0: return {K::constant(in[x], d, n)};
             case 1: return {K::constant(3, d, n)};
             case 2: return {K::random_uniform_variable(n, low, high, d, K::None, 3)};
             default: return {K::random_normal_variable(n, low, high, d, K::None, 3)};
           }
         };
       }},
      {"control_dependencies",
       [](Arguments& a, Call& call) {
         int x = a.any(), y = a.like(x);
         RUN {
           auto after = K::control_dependencies({in[y]});
           return {K::square(in[x])};
         };
       }},
      {"print_tensor",
       [](Arguments& a, Call& call) {
         int x = a.any();
         call.only_eager = true;
         RUN {
           std::ostringstream os;
           os << in[x];
           return {K::count_params(in[x]) < 0 ? Tensor() : K::print_tensor(in[x], "x")};
         };
       }},
  };
}

}  // namespace
const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = [] {
    std::vector<Kind> list = make_kinds();
    add_convolutions(list);
    add_samples(list);
    return list;
  }();
  return all;
}

}  // namespace kassette::test
