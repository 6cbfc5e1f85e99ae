// ops/ctc/ctc_decode.cpp - CTC decoding: greedily, by the most probable class of each time step, or by beam search.
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/rank.h"
#include "core/text.h"
#include "devices/cpu/threads.h"
#include "ops/ctc/beam_search.h"
#include "ops/ctc/ctc.h"
#include "ops/ctc/ctc_batch.h"

namespace kassette::ops {
namespace {

// Inputs: y (samples, steps, classes), input_length (samples,) int64. Outputs: the paths, int64 (samples, longest),
// then the scores, (samples, 1) or (samples, paths).
constexpr const char* kName = "ctc_decode";

struct BeamAttrs {
  static constexpr const char* attrs_name = "ctc_beam_search";
  std::int32_t n_out;
  bool merge_repeated;
  std::int64_t width;
  double epsilon;  // added to the probabilities, as in CtcAttrs
};

void decode_rule(const OpCall& call, TensorSpec* out) {
  const TensorSpec &y = call.spec(0), &steps = call.spec(1);
  if (y.dtype != float32 && y.dtype != float64) fail_not_float({kName, "y_pred"}, y.dtype);
  check_rank({kName, "y_pred"}, y, 3, ": (samples, time steps, classes)");
  check_rank({kName, "input_length"}, steps, 1, ": (samples,)");
  if (y.rank == 3 && y.dims[1] == 0) fail<ValueError>({kName, "y_pred"}, "of shape ", y, " has no time steps");
  if (y.rank == 3 && y.dims[2] == 0)
    fail<ValueError>({kName, "y_pred"}, "of shape ", y, " has no classes", kExpected,
                     "there must be at least one, the blank");
  const std::int64_t n = y.dim(0), m = steps.dim(0);
  if (differ(n, m)) fail<ValueError>({kName}, "y_pred ", y, " has ", n, " samples, input_length ", steps, " has ", m);
  for (int i = 0; i < call.n_out; ++i) {
    const bool scores = i == call.n_out - 1;
    out[i].dtype = scores ? y.dtype : int64;
    out[i].rank = 2;
    out[i].dims[0] = n >= 0 ? n : m;
    out[i].dims[1] = scores ? call.n_out - 1 : kUnknown;
  }
}

using Label = std::vector<std::int64_t>;

/// Writes labels as rows of a matrix, padded with -1 to the longest.
void write_padded(const std::vector<Label>& labels, TensorDesc& out, Device device) {
  std::size_t longest = 0;
  for (const Label& l : labels) longest = std::max(longest, l.size());
  out.dims[1] = static_cast<std::int64_t>(longest);
  allocate_output(out, device);
  auto* to = reinterpret_cast<std::int64_t*>(out.data());
  std::fill_n(to, out.numel(), std::int64_t(-1));
  for (const Label& l : labels) {
    std::copy(l.begin(), l.end(), to);
    to += longest;
  }
}

const std::int64_t* checked_steps(const OpCall& call) {
  const TensorSpec& y = call.spec(0);
  const auto* steps = call.in[1].as<std::int64_t>();
  for (std::int64_t i = 0; i < y.dims[0]; ++i)
    if (steps[i] < 0 || steps[i] > y.dims[1])
      fail<ValueError>({kName, "input_length"}, steps[i], " of sample ", i, kExpected, "it must be 0 to ", y.dims[1],
                       ", the time steps of y_pred");
  return steps;
}
/// Calls f(0.f) or f(0.).
template <class F>
void with_dtype(DType dtype, F&& f) {
  if (dtype == float32) f(0.f);
  else f(0.);
}

/// Decodes a sample by the most probable class of each step (the first one if several are equal as T), and returns the
/// sum of the log probabilities.
template <class T>
double read_greedily(const T* y, std::int64_t steps, std::int64_t classes, T epsilon, Label* label) {
  double score = 0;
  std::int64_t before = -1;
  for (std::int64_t t = 0; t < steps; ++t, y += classes) {
    std::int64_t most = 0;
    for (std::int64_t k = 1; k < classes; ++k)
      if (y[k] + epsilon > y[most] + epsilon) most = k;
    score += std::log(static_cast<double>(y[most]) + static_cast<double>(epsilon));
    if (most != classes - 1 && most != before) label->push_back(most);
    before = most;
  }
  return score;
}
void greedy_kernel(const OpCall& call) {
  const TensorSpec& y = call.spec(0);
  const auto* steps = checked_steps(call);
  std::vector<Label> labels(y.dims[0]);
  with_dtype(y.dtype, [&](auto zero) {
    using T = decltype(zero);
    const std::int64_t all = y.dims[1] * y.dims[2];
    devices::parallel_for(
        y.dims[0], std::max<std::int64_t>(1, (1 << 14) / all), [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t i = begin; i < end; ++i)
            call.out_as<T>(1)[i] =
                static_cast<T>(-read_greedily(call.in[0].as<T>() + i * all, steps[i], y.dims[2],
                                              static_cast<T>(call.attrs.as<CtcAttrs>().epsilon), &labels[i]));
        });
  });
  write_padded(labels, *call.out[0], call.device);
}

/// Returns the best paths by beam search; none if a probability is negative or NaN.
template <class T>
std::vector<BeamPath> search(const T* y, std::int64_t steps, std::int64_t classes, double epsilon, std::int64_t width,
                             std::int64_t paths) {
  BeamSearch beam(classes, width);
  std::vector<double> log_q(classes);
  for (std::int64_t t = 0; t < steps; ++t, y += classes) {
    double sum = 0;
    for (std::int64_t k = 0; k < classes; ++k) sum += static_cast<double>(y[k]) + epsilon;
    const double log_sum = std::log(sum);
    for (std::int64_t k = 0; k < classes; ++k) {
      double& l = log_q[k];
      l = std::log(static_cast<double>(y[k]) + epsilon) - log_sum;
      if (l != l) return {};
    }
    beam.step(log_q.data());
  }
  return beam.best(paths);
}
void beam_kernel(const OpCall& call) {
  const TensorSpec& y = call.spec(0);
  const auto* steps = checked_steps(call);
  const BeamAttrs& attrs = call.attrs.as<BeamAttrs>();
  const std::int64_t n = y.dims[0], paths = call.n_out - 1, all = y.dims[1] * y.dims[2];
  std::vector<std::vector<Label>> labels(paths, std::vector<Label>(n));
  std::vector<std::int64_t> found(n);
  with_dtype(y.dtype, [&](auto zero) {
    using T = decltype(zero);
    devices::parallel_for(n, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        auto best = search(call.in[0].as<T>() + i * all, steps[i], y.dims[2], attrs.epsilon, attrs.width, paths);
        found[i] = static_cast<std::int64_t>(best.size());
        for (std::int64_t p = 0; p < found[i]; ++p) {
          BeamPath& path = best[p];
          if (attrs.merge_repeated)
            path.label.erase(std::unique(path.label.begin(), path.label.end()), path.label.end());
          labels[p][i] = std::move(path.label);
          call.out_as<T>(call.n_out - 1)[i * paths + p] = static_cast<T>(path.log_probability);
        }
      }
    });
  });
  for (std::int64_t i = 0; i < n; ++i) {  // checked here, so that the error names the first such sample
    const std::int64_t f = found[i];
    if (f == 0) fail<ValueError>({kName, "y_pred"}, "of sample ", i, " has a score that is negative or NaN");
    if (f < paths)
      fail<ValueError>({kName, "top_paths"}, "is ", paths, ", and the beam of sample ", i, " ends with ", f,
                       f == 1 ? " label" : " labels");
  }
  for (std::int64_t p = 0; p < paths; ++p) write_padded(labels[p], *call.out[p], call.device);
}

}  // namespace

constinit const OpDef ctc_greedy_op{.name = "ctc_decode", .rule = decode_rule, .cpu = greedy_kernel, .n_out = 2};
constinit const OpDef ctc_beam_op{
    .name = "ctc_beam_search", .rule = decode_rule, .cpu = beam_kernel, .n_out = 0, .outputs = outputs_in<BeamAttrs>};

Tensors ctc_greedy(const Tensor& y, const Tensor& input_length, double epsilon) {
  return apply_all(ctc_greedy_op, CtcAttrs{epsilon}, {y, input_length});
}
Tensors ctc_beam_search(const Tensor& y, const Tensor& input_length, const BeamOptions& options, double epsilon) {
  const BeamAttrs attrs{.n_out = static_cast<std::int32_t>(options.paths + 1),
                        .merge_repeated = options.merge_repeated,
                        .width = options.width,
                        .epsilon = epsilon};
  return apply_all(ctc_beam_op, attrs, {y, input_length});
}

}  // namespace kassette::ops
