// tests/sweeps/bad_input_test.cpp - every sample with bad input: an exception of the right class, with one line that
// starts with the function's name, the same eagerly and when symbolic; nothing has changed afterwards.
#include <kassette/runtime.h>
#include <kassette/testing.h>

#include <algorithm>

#include "tests/catch.h"
#include "tests/settings.h"
#include "tests/sweeps/sample.h"

namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::test;

namespace {

/// Calls the sample and says what is wrong with how it fails.
template <class E>
std::string refusal(const Sample& s, const Tensors& in, std::string* said) {
  try {
    call(s, in);
  } catch (const E& e) {
    *said = e.what();
    return bad_message(s, e.what());
  } catch (const std::exception& e) {
    return std::string("another class of exception: ") + e.what();
  }
  return "is not refused";
}

template <class E>
void check_refusal(const Sample& s, const Tensors& in, const std::string& what) {
  Ledger ledger;
  std::string said;
  if (std::string wrong = refusal<E>(s, in, &said); !wrong.empty()) FAIL_CHECK(what << ": " << wrong);
  if (std::string kept = ledger.change(); !kept.empty()) FAIL_CHECK(what << ": leaves " << kept);
}

DType plain_dtype(const Sample& s) { return s.takes == Takes::bools ? bool_ : takes_integers(s) ? int32 : float32; }

Tensors as_placeholders(const Tensors& in) {
  Tensors out;
  for (const Tensor& x : in) out.push_back(K::placeholder(x.shape(), None, x.dtype()));
  return out;
}

}  // namespace

TEST_CASE("every sample refuses an undefined tensor, whichever input it is", "[sweep][bad]") {
  for (const Sample& s : op_samples()) {
    Shapes shapes = cases_of(s)[0];
    Tensors in = make_inputs(s, shapes, plain_dtype(s));
    for (std::int64_t i = 0; i < in.size(); ++i) {
      if (s.in[i].optional) continue;
      Tensors bad = in;
      bad[i] = Tensor();
      check_refusal<ValueError>(s, bad,
                                title(s, shapes, plain_dtype(s)) + " input " + std::to_string(i) + " undefined");
    }
  }
}

TEST_CASE("every sample refuses shapes that do not fit, eager and symbolic in the same words", "[sweep][bad]") {
  for (const Sample& s : op_samples())
    for (const Shapes& shapes : cases_of(s, s.bad_shapes)) {
      Tensors in = make_inputs(s, shapes, plain_dtype(s));
      std::string what = title(s, shapes, plain_dtype(s)), eager, symbolic;
      if (std::string wrong = refusal<ValueError>(s, in, &eager); !wrong.empty()) FAIL_CHECK(what << ": " << wrong);
      bool by_value = false;  // what depends on values is seen when they are there
      for (std::int64_t i = 0; i < in.size(); ++i) by_value = by_value || (s.in[i].host && s.in[i].dtype.is_integer());
      if (by_value) continue;
      if (std::string wrong = refusal<ValueError>(s, as_placeholders(in), &symbolic); !wrong.empty())
        FAIL_CHECK(what << " symbolic: " << wrong);
      if (!eager.empty() && !symbolic.empty() && eager != symbolic)
        FAIL_CHECK(what << ": eager says " << eager << ", symbolic " << symbolic);
    }
}

namespace {

bool same_ranks(const Shapes& a, const Shapes& b) {
  bool same = true;
  for (std::size_t i = 0; i < a.size(); ++i) same = same && a[i].rank() == b[i].rank();
  return same;
}

/// Builds a function of the sample on those placeholders, and calls it with bad inputs.
void check_refused_at_replay(const Sample& s, const Tensors& xs, const Tensors& in, const std::string& what) {
  bool built = false;
  try {
    Tensor counter = K::variable(1, "float64");
    auto f = K::function(xs, call(s, xs), {{counter, counter + 1.0}});
    built = true;
    Ledger ledger;
    std::string said;
    try {
      f(in);
      said = "is not refused";
    } catch (const ValueError& e) {
      said = bad_message(s, e.what());
    }
    if (!said.empty()) FAIL_CHECK(what << ": " << said);
    CHECK(counter.item<double>() == 1);
    if (std::string kept = ledger.change(); !kept.empty()) FAIL_CHECK(what << ": leaves " << kept);
  } catch (const ValueError& e) {  // some need to know the rank
    bool unranked = std::any_of(xs.begin(), xs.end(), [](const Tensor& x) { return x.ndim() < 0; });
    std::string wrong = built || !unranked ? std::string("threw ") + e.what() : bad_message(s, e.what());
    if (!wrong.empty()) FAIL_CHECK(what << ": " << wrong);
  } catch (const std::exception& e) {
    FAIL_CHECK(what << ": threw " << e.what());
  }
}

}  // namespace

TEST_CASE("every sample refuses at replay what it refuses at once, in its own name, and no variable changes",
          "[sweep][bad]") {
  for (const Sample& s : op_samples()) {
    if (s.traits.sized) continue;
    Shapes good = cases_of(s)[0];
    for (const Shapes& shapes : cases_of(s, s.bad_shapes)) {
      std::string what = title(s, shapes, plain_dtype(s)) + " replayed";
      Tensors in = make_inputs(s, shapes, plain_dtype(s)), sized, unranked;
      for (const Tensor& x : in) {
        sized.push_back(K::placeholder(None, x.ndim(), x.dtype()));
        unranked.push_back(K::placeholder(None, None, x.dtype()));
      }
      if (same_ranks(good, shapes)) check_refused_at_replay(s, sized, in, what);
      check_refused_at_replay(s, unranked, in, what + " of unknown rank");
    }
  }
}

TEST_CASE("every sample of several tensors refuses two dtypes with a TypeError", "[sweep][bad]") {
  for (const Sample& s : op_samples()) {
    Shapes shapes = cases_of(s)[0];
    int first = -1;
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      // What is read for its shape alone, as the inputs named `like`, may have any dtype.
      if (s.in[i].dtype.given() || s.in[i].mixes || (!s.in[i].differentiable && s.order == Order::second)) continue;
      if (first < 0) {
        first = static_cast<int>(i);
        continue;
      }
      if (s.takes == Takes::bools) continue;
      Tensors in = make_inputs(s, shapes, float32);
      // np and nn promote dtypes of one kind.
      const DType other = s.traits.np || s.traits.nn ? int32 : float64;
      in[static_cast<std::int64_t>(i)] = K::cast(in[static_cast<std::int64_t>(i)], other);
      check_refusal<TypeError>(s, in, title(s, shapes, float32) + " input " + std::to_string(i) + " " + other.name());
    }
  }
}

TEST_CASE("every sample of several tensors refuses two devices with a DeviceError", "[sweep][bad]") {
  Device other("cuda:0");
  for (const Sample& s : op_samples()) {
    Shapes shapes = cases_of(s)[0];
    std::string what = title(s, shapes, plain_dtype(s)) + " on two devices";
    Tensors in = make_inputs(s, shapes, plain_dtype(s));
    std::int64_t device_inputs = 0, moved = 0;
    for (std::int64_t i = in.size() - 1; i >= 0; --i)
      if (!s.in[i].host && !s.in[i].anywhere && in[i].shape().rank() > 0) {  // of rank 0: follows the others
        ++device_inputs;
        moved = i;
      }
    if (device_inputs < 2) continue;
    // A symbol needs no device to be there.
    TensorDesc body = Access::desc(K::placeholder(in[moved].shape(), None, in[moved].dtype()));
    body.device = other;
    in[moved] = Access::wrap(body);
    check_refusal<DeviceError>(s, in, what);
  }
}

TEST_CASE("every sample that does not fit the memory limit throws a MemoryError and leaves nothing", "[sweep][bad]") {
  int refused = 0;
  for (const Sample& s : op_samples()) {
    if (!s.traits.grows) continue;
    Shapes shapes = grown(cases_of(s)[0], 60000);
    std::string what = title(s, shapes, plain_dtype(s)) + " with no memory left";
    Tensors in = make_inputs(s, shapes, plain_dtype(s));
    empty_cache();
    Ledger ledger;
    std::string wrong;
    bool threw = false;
    {
      MemoryLimit none_left(memory_stats().live + memory_stats().cached + 1);
      try {
        call(s, in);
      } catch (const MemoryError& e) {
        threw = true;
        wrong = bad_message(s, e.what());
      } catch (const std::exception& e) {
        wrong = std::string("no MemoryError: ") + e.what();
      }
    }
    refused += threw;
    if (!wrong.empty()) FAIL_CHECK(what << ": " << wrong);
    if (std::string kept = ledger.change(); !kept.empty()) FAIL_CHECK(what << ": leaves " << kept);
    empty_cache();
    reset_peak_memory();
    const std::int64_t before = memory_stats().live;
    try {
      call(s, in);
    } catch (const std::exception& e) {
      FAIL_CHECK(what << ", and then with memory: " << e.what());
    }
    // Views and small results fit; what takes memory when it may must have been refused it.
    const std::int64_t taken = memory_stats().peak - before;
    if (threw != (taken > 0))
      FAIL_CHECK(what << ": " << (threw ? "refused" : "not refused") << ", and takes " << taken << " bytes");
  }
  CHECK(refused > 100);
}
