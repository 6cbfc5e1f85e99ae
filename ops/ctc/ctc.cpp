// ops/ctc/ctc.cpp - the CTC loss of a batch: checks, value, first and second derivatives.
#include "ops/ctc/ctc.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "core/rank.h"
#include "core/text.h"
#include "devices/cpu/threads.h"
#include "ops/ctc/ctc_batch.h"
#include "ops/ctc/ctc_log.h"
#include "ops/ctc/ctc_loops.h"
#include "ops/engine/expr.h"
#include "ops/sparse/sparse.h"

namespace kassette::ops {
namespace {

// ---- rules ----------------------------------------------------------------------------------------------------------
/// Returns the number of samples, kUnknown if no input tells it. Throws ValueError if the inputs differ in it.
std::int64_t samples(const OpCall& call) {
  constexpr const char* names[] = {"y_true", "y_pred", "input_length", "label_length"};
  std::int64_t n = kUnknown;
  int from = 0;
  for (int i : {kCtcY, kCtcLabels, kCtcInputLength, kCtcLabelLength}) {
    const TensorSpec& x = call.spec(i);
    if (x.dim(0) < 0) continue;
    if (differ(n, x.dims[0]))
      fail<ValueError>({kCtcName}, names[from], " ", call.spec(from), " has ", n, " samples, ", names[i], " ", x,
                       " has ", x.dims[0]);
    n = x.dims[0];
    from = i;
  }
  return n;
}
std::int64_t check(const OpCall& call) {
  const TensorSpec& y = call.spec(kCtcY);
  if (y.dtype != float32 && y.dtype != float64) fail_not_float({kCtcName, "y_pred"}, y.dtype);
  check_rank({kCtcName, "y_pred"}, y, 3, ": (samples, time steps, classes)");
  check_rank({kCtcName, "y_true"}, call.spec(kCtcLabels), 2, ": (samples, labels)");
  for (auto [i, name] : {std::pair(kCtcInputLength, "input_length"), std::pair(kCtcLabelLength, "label_length")}) {
    const TensorSpec& x = call.spec(i);
    check_rank({kCtcName, name}, x, 2, ": (samples, 1)");
    if (differ(x.dim(1), 1)) fail<ValueError>({kCtcName, name}, "has shape ", x, kExpected, "it must be (samples, 1)");
  }
  if (y.rank == 3 && y.dims[2] == 0)
    fail<ValueError>({kCtcName, "y_pred"}, "of shape ", y, " has no classes", kExpected,
                     "there must be at least one, the blank");
  return samples(call);
}
void cost_rule(const OpCall& call, TensorSpec* out) {
  const std::int64_t n = check(call);
  out->dtype = call.spec(kCtcY).dtype;
  out->rank = 2;
  out->dims[0] = n;
  out->dims[1] = 1;
}
void grad_rule(const OpCall& call, TensorSpec* out) {
  check(call);
  out->set(call.spec(kCtcY));
}

// ---- samples, checked -----------------------------------------------------------------------------------------------
/// The labels of one sample, and the tables about them that the loops read (see CtcSample).
struct Labels {
  std::vector<std::int64_t> ids, first, slot, seen;
  std::vector<double> skip;
  explicit Labels(const std::int64_t* begin, std::int64_t n, std::int64_t classes) : ids(begin, begin + n) {
    skip.resize(ctc_width(n) + 8);
    std::vector<std::int64_t> at(classes, -1);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (i > 0 && ids[i] != ids[i - 1]) skip[i] = 1;
      first.push_back(i == 0 ? 0 : first.back() + (skip[i] != 0 ? 1 : 2));
      std::int64_t& slot_of = at[ids[i]];
      if (slot_of < 0) {
        slot_of = static_cast<std::int64_t>(seen.size());
        seen.push_back(ids[i]);
      }
      slot.push_back(slot_of);
    }
  }
};

/// The samples of a call. The constructor throws if lengths or labels are invalid.
class Batch {
 public:
  explicit Batch(const OpCall& call)
      : call_(call), labels_(call.in[kCtcLabels].as<std::int64_t>()), counts_(y().dims[0]) {
    const auto *input_length = call.in[kCtcInputLength].as<std::int64_t>(),
               *label_length = call.in[kCtcLabelLength].as<std::int64_t>();
    const CtcSizes sizes{y().dims[1], y().dims[2], call.spec(kCtcLabels).dims[1]};
    for (std::int64_t i = 0; i < y().dims[0]; ++i) {
      CtcCounts& c = counts_[i];
      c = ctc_counts(sizes, i, labels_ + i * sizes.width, input_length[i], label_length[i]);
      if (c.refusal != Refusal::none) refuse(c.refusal, c.numbers);
    }
  }
  const TensorSpec& y() const { return call_.spec(kCtcY); }
  std::int64_t steps(std::int64_t i) const { return counts_[i].steps; }
  std::int64_t length(std::int64_t i) const { return counts_[i].labels; }

  /// Calls f(index, sample) for each sample that has time steps, on several threads.
  template <class T, class F>
  void run(F&& f) const {
    constexpr std::int64_t kGrain = 1 << 13;  // classes and states
    const std::int64_t step = y().dims[2], all = y().dims[1] * step, width = call_.spec(kCtcLabels).dims[1];
    const std::int64_t work = std::max<std::int64_t>(1, y().dims[1] * (step + 4 * width));
    devices::parallel_for(
        y().dims[0], std::max<std::int64_t>(1, kGrain / work), [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t i = begin; i < end; ++i) {
            if (steps(i) == 0) continue;
            const Labels l(labels_ + i * width, length(i), step);
            f(i, CtcSample<T>{call_.in[kCtcY].as<T>() + i * all, steps(i), step, call_.attrs.as<CtcAttrs>().epsilon,
                              length(i), l.ids.data(), l.first.data(), l.slot.data(), l.seen.data(),
                              static_cast<std::int64_t>(l.seen.size()), l.skip.data()});
          }
        });
  }

 private:
  const OpCall& call_;
  const std::int64_t* labels_;
  std::vector<CtcCounts> counts_;
};

// ---- kernels --------------------------------------------------------------------------------------------------------
template <class T>
const CtcLoops<T>& loops() {
  if constexpr (std::is_same_v<T, float>) return KASSETTE_PICK(ctc_table).f32;
  else return KASSETTE_PICK(ctc_table).f64;
}
/// True if all probabilities are positive, so that the loops in linear space can divide by them.
template <class T>
bool is_positive(const CtcSample<T>& s) {
  return s.epsilon > 0;
}

template <class T>
double loss_of(const CtcSample<T>& s) {
  if (s.slack() < 0) return std::numeric_limits<double>::infinity();
  double loss = 0;
  std::vector<double> scratch(ctc_loss_scratch(s.length));
  if (is_positive(s) && loops<T>().loss(s, scratch.data(), &loss)) return loss;
  scratch.resize(ctc_gradient_scratch(s.length, s.steps));
  if (is_positive(s) && loops<T>().gradient(s, scratch.data(), &loss, nullptr)) return loss;
  return ctc_in_log_space<T>(s, nullptr);
}
template <class T>
void gradient_of(const CtcSample<T>& s, T* g) {
  if (s.slack() < 0) return loops<T>().uniform(s, g);
  double loss;
  std::vector<double> scratch(ctc_gradient_scratch(s.length, s.steps));
  if (is_positive(s) && loops<T>().gradient(s, scratch.data(), &loss, g)) return;
  ctc_in_log_space(s, g);
}

/// Calls f(0.f) or f(0.).
template <class F>
void with_dtype(DType dtype, F&& f) {
  if (dtype == float32) f(0.f);
  else f(0.);
}

void cost_kernel(const OpCall& call) {
  const Batch batch(call);
  with_dtype(batch.y().dtype, [&](auto zero) {
    using T = decltype(zero);
    T* loss = call.out_as<T>();
    std::fill_n(loss, batch.y().dims[0], T(0));  // the loss of samples without time steps and labels
    batch.run<T>([&](std::int64_t i, const CtcSample<T>& s) { loss[i] = static_cast<T>(loss_of(s)); });
  });
}
/// Sets the steps from input_length on to 0, and calls f(sample, index of its first element) for each sample to fill in
/// the others.
template <class T, class F>
void write_steps(const Batch& batch, T* out, F&& f) {
  const std::int64_t step = batch.y().dims[2], all = batch.y().dims[1] * step;
  for (std::int64_t i = 0; i < batch.y().dims[0]; ++i)
    std::fill(out + i * all + batch.steps(i) * step, out + (i + 1) * all, T(0));
  batch.run<T>([&](std::int64_t i, const CtcSample<T>& s) { f(s, i * all); });
}
void grad_kernel(const OpCall& call) {
  const Batch batch(call);
  with_dtype(batch.y().dtype, [&](auto zero) {
    using T = decltype(zero);
    T* g = call.out_as<T>();
    write_steps(batch, g, [&](const CtcSample<T>& s, std::int64_t at) { gradient_of(s, g + at); });
  });
}
void grad_grad_kernel(const OpCall& call) {
  const Batch batch(call);
  with_dtype(batch.y().dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* v = call.in[kCtcDirection].as<T>();
    T* out = call.out_as<T>();
    write_steps(batch, out,
                [&](const CtcSample<T>& s, std::int64_t at) { ctc_second_derivative(s, v + at, out + at); });
  });
}

// ---- labels ---------------------------------------------------------------------------------------------------------
/// The mask of the labels that count, on the host: the entries of the sparse tensor. Inputs: labels (only their shape
/// is read), lengths.
void mask_rule(const OpCall& call, TensorSpec* out) {
  const TensorSpec &labels = call.spec(0), &lengths = call.spec(1);
  const char* name = call.op.name;
  check_rank({name, "labels"}, labels, 2, ": (samples, labels)");
  check_rank({name, "label_lengths"}, lengths, 1, ": (samples,)");
  out->dtype = bool_;
  out->rank = 2;
  out->dims[0] = labels.dim(0) < 0 ? lengths.dim(0) : labels.dim(0);
  out->dims[1] = labels.dim(1);
  if (differ(labels.dim(0), lengths.dim(0)))
    fail<ValueError>({name}, "labels ", labels, " and ", lengths.dims[0], " label_lengths", kExpected,
                     "there must be one for each sample");
}
void mask_kernel(const OpCall& call) {
  const TensorSpec& labels = call.spec(0);
  const auto* lengths = call.in[1].as<std::int64_t>();
  for (std::int64_t i = 0; i < labels.dims[0]; ++i)
    for (std::int64_t k = 0; k < labels.dims[1]; ++k) call.out_as<bool>()[i * labels.dims[1] + k] = k < lengths[i];
}

// ---- adjoints -------------------------------------------------------------------------------------------------------
void cost_vjp(const VjpContext& ctx) {
  if (!ctx.wants(kCtcY)) return;
  Tensor g = apply1(ctc_batch_cost_grad_op, ctx.attrs,
                    {ctx.in(kCtcLabels), ctx.in(kCtcY), ctx.in(kCtcInputLength), ctx.in(kCtcLabelLength)});
  ctx.din(kCtcY) = mul_no_nan(expand_dims(ctx.dy(), -1), g);
}
/// The Hessian is symmetric, so its vjp is a Hessian-vector product. Each sample has a Hessian of its own.
void grad_vjp(const VjpContext& ctx) {
  if (ctx.wants(kCtcY))
    ctx.din(kCtcY) =
        apply1(ctc_batch_cost_grad_grad_op, ctx.attrs,
               {ctx.in(kCtcLabels), ctx.in(kCtcY), ctx.in(kCtcInputLength), ctx.in(kCtcLabelLength), ctx.dy()});
}
void grad_grad_vjp(const VjpContext& ctx) {
  if (ctx.wants(kCtcY)) fail<NotImplementedError>({kCtcName}, "its gradient can be taken twice, not three times");
  if (ctx.wants(kCtcDirection))
    ctx.din(kCtcDirection) =
        apply1(ctc_batch_cost_grad_grad_op, ctx.attrs,
               {ctx.in(kCtcLabels), ctx.in(kCtcY), ctx.in(kCtcInputLength), ctx.in(kCtcLabelLength), ctx.dy()});
}

}  // namespace

constinit const OpDef ctc_batch_cost_op{
    .name = "ctc_batch_cost", .rule = cost_rule, .cpu = cost_kernel, .vjp = cost_vjp, .saves_in = 15};
constinit const OpDef ctc_batch_cost_grad_op{
    .name = "ctc_batch_cost_grad", .rule = grad_rule, .cpu = grad_kernel, .vjp = grad_vjp, .saves_in = 15};
// Inputs: those of the loss, and a direction.
constinit const OpDef ctc_batch_cost_grad_grad_op{.name = "ctc_batch_cost_grad_grad",
                                                  .rule = grad_rule,
                                                  .cpu = grad_grad_kernel,
                                                  .vjp = grad_grad_vjp,
                                                  .saves_in = 31};
constinit const OpDef ctc_label_mask_op{
    .name = "ctc_label_dense_to_sparse", .rule = mask_rule, .cpu = mask_kernel, .shape_only = 1, .host = 3};

Tensor ctc_label_dense_to_sparse(const Tensor& labels, const Tensor& lengths) {
  return to_sparse(labels, apply1(ctc_label_mask_op, {labels, lengths.to(cpu)}));
}

Tensor ctc_batch_cost(const Tensor& labels, const Tensor& y, const Tensor& input_length, const Tensor& label_length,
                      double epsilon) {
  return apply1(ctc_batch_cost_op, CtcAttrs{epsilon}, {labels, y, input_length, label_length});
}

}  // namespace kassette::ops
