// tests/sweeps/symbolic_test.cpp - every sample: eager, recorded on placeholders and replayed by a function, it gives
// the same bits.
#include <kassette/testing.h>

#include <set>
#include <string>

#include "autograd/tape/shadow.h"
#include "core/fast_paths.h"
#include "tests/catch.h"
#include "tests/settings.h"
#include "tests/sweeps/sample.h"

namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::test;

namespace {

/// The results of a call, and the gradients of its float outputs with given cotangents.
struct Results {
  Tensors values, gradients;
};

Tensor loss_of(const Tensors& ys, const Tensors& cotangents) {
  Tensor loss;
  std::int64_t k = 0;
  for (const Tensor& y : ys) {
    if (!y.dtype().is_float()) continue;
    Tensor part = K::sum(y * cotangents[k++]);
    loss = loss.defined() ? loss + part : part;
  }
  return loss;
}

Results differentiate(const Sample& s, const Tensors& xs, const Tensors& cotangents) {
  Results r;
  r.values = call(s, xs);
  Tensor loss = s.order == Order::none ? Tensor() : loss_of(r.values, cotangents);
  if (loss.defined()) r.gradients = K::gradients(loss, xs);
  return r;
}

Tensors defined_ones(const Results& r) {
  Tensors out = r.values;
  for (const Tensor& g : r.gradients)
    if (g.defined()) out.push_back(g);
  return out;
}

Tensors cotangents_for(const Tensors& ys) {
  Tensors out;
  for (const Tensor& y : ys)
    if (y.dtype().is_float()) out.push_back(make_input({-1, 1}, y.shape(), y.dtype(), static_cast<int>(out.size())));
  return out;
}

/// A static shape may leave sizes unknown, but must not contradict the real shape.
bool compatible(const Shape& known, const Shape& shape) {
  if (known.rank() < 0) return true;
  if (known.rank() != shape.rank()) return false;
  for (int i = 0; i < shape.rank(); ++i)
    if (known.begin()[i] >= 0 && known.begin()[i] != shape.begin()[i]) return false;
  return true;
}

std::string difference(const Tensors& got, const Tensors& wanted) {
  if (got.size() != wanted.size())
    return std::to_string(got.size()) + " results, expected " + std::to_string(wanted.size());
  for (std::int64_t i = 0; i < got.size(); ++i) {
    if (same_bits(got[i], wanted[i])) continue;
    std::string why = testing::compare(got[i], wanted[i], {.rtol = 0, .atol = 0}).message;
    return "result " + std::to_string(i) + ": " + (why.empty() ? "other bits" : why);
  }
  return "";
}

Tensors placeholders(const Sample& s, const Shapes& shapes, DType dtype, bool known_rank) {
  Tensors xs;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    DType d = s.in[i].dtype.given() ? s.in[i].dtype : dtype;
    xs.push_back(known_rank ? placeholder_for(s, i, shapes[i], d) : K::placeholder(None, None, d));
  }
  return xs;
}

/// One function over placeholders of unknown sizes, called with those thresholds, against eager variables, for all
/// cases of the same ranks.
std::string replay(const Sample& s, const std::vector<Shapes>& cases, DType dtype,
                   const FastPathThresholds& thresholds) {
  Tensors xs = placeholders(s, cases[0], dtype, true), cs;
  Tensors probe = call(s, xs);
  for (const Tensor& y : probe)
    if (y.dtype().is_float())
      cs.push_back(K::placeholder(None, y.shape().rank() < 0 ? Scalar(None) : Scalar(y.shape().rank()), y.dtype()));
  Results symbolic = differentiate(s, xs, cs);
  Tensors inputs = xs;
  for (const Tensor& c : cs) inputs.push_back(c);
  Tensors outputs = defined_ones(symbolic);
  Function f = K::function(inputs, outputs);
  for (const Shapes& shapes : cases) {
    Tensors in = make_inputs(s, shapes, dtype), vs;
    for (const Tensor& x : in) vs.push_back(K::variable(x, x.dtype()));
    Tensors cotangents = cotangents_for(call(s, in)), feeds = in;
    for (const Tensor& c : cotangents) feeds.push_back(c);
    Tensors eager = defined_ones(differentiate(s, vs, cotangents));
    for (Tensor& e : eager) e = K::eval(e);
    const Thresholds scope(thresholds);
    Tensors played = f(feeds);
    for (std::int64_t i = 0; i < outputs.size() && i < eager.size(); ++i)
      if (!compatible(outputs[i].shape(), eager[i].shape()))
        return title(s, shapes, dtype) + ": result " + std::to_string(i) + " has static shape " +
               text(outputs[i].shape()) + ", and is " + text(eager[i].shape());
    if (std::string d = difference(played, eager); !d.empty())
      return title(s, shapes, dtype) + ": played against eager: " + d;
  }
  return "";
}

std::string in_scope(const Sample& s, const Shapes& shapes, DType dtype) {
  Tensors in = make_inputs(s, shapes, dtype), vs;
  for (const Tensor& x : in) vs.push_back(K::variable(x, x.dtype()));
  Tensors eager = call(s, vs), recorded = K::symbolic([&] { return call(s, vs); })(), values;
  for (Tensor& e : eager) e = K::eval(e);
  for (std::int64_t i = 0; i < recorded.size(); ++i) {
    if (!compatible(recorded[i].shape(), eager[i].shape()))
      return "static shape " + text(recorded[i].shape()) + ", and is " + text(eager[i].shape());
    values.push_back(K::eval(recorded[i]));
  }
  return difference(values, eager);
}

/// First and second gradients of a loss, empty where there is no path.
Tensors two_orders(Tensor loss, const Tensors& xs) {
  Tensors all = K::gradients(std::move(loss), xs);
  Tensor squares;
  for (const Tensor& g : all)
    if (g.defined()) squares = squares.defined() ? squares + K::sum(K::square(g)) : K::sum(K::square(g));
  if (squares.defined())
    for (const Tensor& g : K::gradients(squares, xs)) all.push_back(g);
  return all;
}

/// The sample as the body of a branch: its gradients come from the tape that the branch hands over.
std::string in_branch(const Sample& s, const Shapes& shapes, DType dtype) {
  Tensors in = make_inputs(s, shapes, dtype), vs, xs = placeholders(s, shapes, dtype, true);
  for (const Tensor& x : in) vs.push_back(K::variable(x, x.dtype()));
  Tensors cotangents = cotangents_for(call(s, in));
  if (cotangents.empty()) return "";
  Tensor yes = K::placeholder({}, None, bool_);
  Tensor loss = K::switch_(
      yes, [&] { return loss_of(call(s, xs), cotangents); }, [&] { return K::zeros({}, cotangents[0].dtype()); });
  Tensors symbolic = two_orders(loss, xs), eager = two_orders(loss_of(call(s, vs), cotangents), vs);
  Tensors inputs = xs, feeds = in, outputs(loss), wanted(loss_of(call(s, vs), cotangents));
  inputs.push_back(yes);
  feeds.push_back(K::constant(true, bool_));
  for (std::int64_t i = 0; i < symbolic.size(); ++i) {
    if (!symbolic[i].defined()) continue;
    outputs.push_back(symbolic[i]);  // a node says zero where its body has no path
    wanted.push_back(i < eager.size() && eager[i].defined()
                         ? eager[i]
                         : K::zeros_like(in[i % in.size()], in[i % in.size()].dtype()));
  }
  Tensors played = K::function(inputs, outputs)(feeds);
  for (std::int64_t i = 0; i < played.size(); ++i)
    if (auto c = testing::compare(played[i], K::eval(wanted[i])); !c)
      return "result " + std::to_string(i) + ": " + c.message;
  return "";
}

/// First and second eager gradients of backward passes that release what they saved, against passes that keep it.
std::string rematerialize(const Sample& s, const Shapes& shapes, DType dtype) {
  Tensors in = make_inputs(s, shapes, dtype), vs;
  for (const Tensor& x : in) vs.push_back(K::variable(x, x.dtype()));
  Tensors cotangents = cotangents_for(call(s, in));
  if (cotangents.empty()) return "";
  auto loss = [&] { return loss_of(call(s, vs), cotangents); };
  Tensors kept = two_orders(loss(), vs);
  const Thresholds scope(thresholds_at(0, 0));
  return difference(two_orders(loss(), vs), kept);
}

/// Draws are those of an eager call at the first call of a function only.
std::vector<std::vector<Shapes>> one_by_one(const Sample& s) {
  std::vector<std::vector<Shapes>> groups;
  for (const Shapes& shapes : cases_of(s)) groups.push_back({shapes});
  return groups;
}

std::vector<DType> two_widths(const Sample& s) {
  if (s.takes == Takes::bools) return {bool_};
  if (takes_integers(s)) return {int32};
  return {float32, float64};
}

}  // namespace

TEST_CASE("every sample on placeholders, replayed at all its sizes, is bit-identical to eager calls, gradients too",
          "[sweep]") {
  for (const Sample& s : op_samples())
    for (const auto& cases : s.traits.draws ? one_by_one(s) : cases_by_ranks(s))
      for (DType dtype : two_widths(s)) {
        Ledger ledger;
        try {
          if (std::string wrong = replay(s, cases, dtype, fast_path_thresholds); !wrong.empty()) FAIL_CHECK(wrong);
        } catch (const std::exception& e) {
          FAIL_CHECK(title(s, cases[0], dtype) << ": threw " << e.what());
        }
        if (std::string kept = ledger.change(); !kept.empty())
          FAIL_CHECK(title(s, cases[0], dtype) << ": leaves " << kept);
      }
}

TEST_CASE("every sample is bit-identical to eager calls where fast paths are taken whatever the sizes, gradients too",
          "[sweep]") {
  const Threads two(2);
  const CountedPaths counted;
  for (const Sample& s : op_samples()) {
    for (auto cases : s.traits.draws ? one_by_one(s) : cases_by_ranks(s)) {
      if (s.traits.grows && !s.traits.draws && !s.traits.sized) cases.push_back(grown(cases[0], 600));
      for (DType dtype : two_widths(s)) try {
          if (std::string wrong = replay(s, cases, dtype, thresholds_at(0, 0)); !wrong.empty()) FAIL_CHECK(wrong);
        } catch (const std::exception& e) {
          FAIL_CHECK(title(s, cases[0], dtype) << ": threw " << e.what());
        }
    }
    if (s.order == Order::none || s.traits.draws) continue;
    for (const Shapes& shapes : cases_of(s)) try {
        if (std::string wrong = rematerialize(s, shapes, float32); !wrong.empty())
          FAIL_CHECK(title(s, shapes, float32) << ": rematerialized: " << wrong);
      } catch (const std::exception& e) {
        FAIL_CHECK(title(s, shapes, float32) << ": threw " << e.what());
      }
  }
  for (FastPath path : {FastPath::streamed, FastPath::rematerialized, FastPath::loop_chain}) {
    INFO(kFastPathNames[static_cast<int>(path)]);
    const bool held = autograd::shadow && path == FastPath::rematerialized;  // shadow mode keeps what is saved
    CHECK((times_taken(path) > 0) == !held);
  }
}

TEST_CASE("every sample in a branch has the first and second gradients of the eager call", "[sweep][serial]") {
  for (const Sample& s : op_samples()) {
    if (s.order == Order::none || s.traits.draws) continue;
    for (const Shapes& shapes : cases_of(s)) try {
        if (std::string wrong = in_branch(s, shapes, float64); !wrong.empty())
          FAIL_CHECK(title(s, shapes, float64) << ": " << wrong);
      } catch (const std::exception& e) {
        FAIL_CHECK(title(s, shapes, float64) << ": threw " << e.what());
      }
  }
}

TEST_CASE("every sample on variables inside K::symbolic, when evaluated, is bit-identical to the eager call",
          "[sweep]") {
  for (const Sample& s : op_samples())
    for (const Shapes& shapes : cases_of(s)) {
      DType dtype = two_widths(s)[0];
      Ledger ledger;
      try {
        if (std::string wrong = in_scope(s, shapes, dtype); !wrong.empty())
          FAIL_CHECK(title(s, shapes, dtype) << ": " << wrong);
      } catch (const std::exception& e) {
        FAIL_CHECK(title(s, shapes, dtype) << ": threw " << e.what());
      }
      if (std::string kept = ledger.change(); !kept.empty()) FAIL_CHECK(title(s, shapes, dtype) << ": leaves " << kept);
    }
}

TEST_CASE(
    "every sample on placeholders of unknown rank, replayed, is bit-identical to eager calls, or says that it needs the rank",
    "[sweep]") {
  std::set<std::string> asked;
  for (const Sample& s : op_samples())
    for (const Shapes& shapes : cases_of(s)) {
      DType dtype = two_widths(s)[0];
      try {
        Tensors xs = placeholders(s, shapes, dtype, false), ys;
        try {
          ys = call(s, xs);
        } catch (const Error& e) {
          if (!s.traits.np && !s.traits.nn) asked.insert(s.name);
          if (std::string(e.what()).find("rank") == std::string::npos &&
              std::string(e.what()).find("(...)") == std::string::npos)
            FAIL_CHECK(title(s, shapes, dtype) << ": refuses an unknown rank without saying so: " << e.what());
          continue;
        }
        Tensors in = make_inputs(s, shapes, dtype), eager = call(s, in);
        for (Tensor& e : eager) e = K::eval(e);
        if (std::string d = difference(K::function(xs, ys)(in), eager); !d.empty())
          FAIL_CHECK(title(s, shapes, dtype) << ": " << d);
      } catch (const std::exception& e) {
        FAIL_CHECK(title(s, shapes, dtype) << ": threw " << e.what());
      }
    }
  // An axis that is not the last, rows that a condition chooses, elements of a loop, a scalar, several index tensors:
  // what they are depends on the rank.
  CHECK(asked == std::set<std::string>{"batch_normalization",
                                       "bias_add",
                                       "foldl",
                                       "foldr",
                                       "in_test_phase",
                                       "in_train_phase",
                                       "index_add",
                                       "index_max",
                                       "index_min",
                                       "index_multiply",
                                       "index_positions",
                                       "index_set",
                                       "map_fn",
                                       "nonzero",
                                       "repeat",
                                       "resize_images",
                                       "resize_volumes",
                                       "rnn",
                                       "sparse_categorical_crossentropy",
                                       "switch_"});
}
