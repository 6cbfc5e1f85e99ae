// ops/product/contraction.cpp - reduces a contraction of labelled axes to matrix products.
#include "ops/product/contraction.h"

#include <algorithm>

#include "ops/product/zero_terms.h"

namespace kassette::ops {
namespace {

/// An operand with its strides by label; 0 if it does not have the label or is broadcast along it.
struct Side {
  const std::byte* data;
  std::int64_t stride[kLabels] = {};
  std::uint32_t has = 0;  // labels along which it has more than one element

  Side(const Labels& labels, const TensorSpec& spec, const std::byte* bytes) : data(bytes) {
    std::int64_t step = 1;
    for (int i = labels.rank - 1; i >= 0; --i) {
      if (spec.dims[i] != 1) {
        has |= 1u << labels.of[i];
        stride[labels.of[i]] = step;
      }
      step *= spec.dims[i];
    }
  }
};

/// Labels that form one axis of a matrix, outermost first.
struct Group {
  int n = 0;
  int label[kMaxRank];
  void push(int l) { label[n++] = l; }
  std::int64_t size(const std::int64_t* dims) const {
    std::int64_t s = 1;
    for (int i = 0; i < n; ++i) s *= dims[label[i]];
    return s;
  }
  /// The stride of the joined axis; 0 if the group is empty.
  std::int64_t stride(const Side& s) const { return n ? s.stride[label[n - 1]] : 0; }
  bool joins(const Side& s, const std::int64_t* dims, int from = 0) const {
    for (int i = from; i + 1 < n; ++i)
      if (s.stride[label[i]] != s.stride[label[i + 1]] * dims[label[i + 1]]) return false;
    return true;
  }
};

/// Copies an operand so that its axes stand in the order of the three groups.
void rearrange(Side& s, const Group& batch, const Group& outer, const Group& inner, const std::int64_t* dims, int item,
               Rearranger& to_order) {
  Strided layout;
  std::int64_t count = 1, to[kLabels] = {};
  for (const Group* g : {&inner, &outer, &batch})
    for (int i = g->n - 1; i >= 0; --i) {
      if (!(s.has >> g->label[i] & 1)) continue;
      to[g->label[i]] = count;
      count *= dims[g->label[i]];
    }
  for (const Group* g : {&batch, &outer, &inner})
    for (int i = 0; i < g->n; ++i)
      if (s.has >> g->label[i] & 1) layout.push(dims[g->label[i]], s.stride[g->label[i]], to[g->label[i]]);
  s.data = to_order.copy(layout, s.data, count, item);
  std::copy_n(to, kLabels, s.stride);
}

/// Prepares one side of the product. `kept` are its axes in the result: as many inner ones as possible are joined into
/// one matrix axis, and the others become `loops`.
void join_kept(Side& s, Side& out, const Group& batch, Group& kept, const Group& summed, std::int64_t work,
               const std::int64_t* dims, int item, Rearranger& to_order, Group* loops) {
  int from = 0;
  while (from + 1 < kept.n && !(kept.joins(s, dims, from) && kept.joins(out, dims, from))) ++from;
  // Many small products cost more than a copy that makes them one product, which is possible if the axes can be joined
  // in the result.
  if (from > 0 && kept.joins(out, dims)) {
    std::int64_t inner = 1, total = kept.size(dims);
    for (int i = from; i < kept.n; ++i) inner *= dims[kept.label[i]];
    if (inner < 32 && work / total * inner < (1 << 14)) {
      rearrange(s, batch, kept, summed, dims, item, to_order);
      from = 0;
    }
  }
  for (int i = 0; i < from; ++i) loops->push(kept.label[i]);
  for (int i = from; i < kept.n; ++i) kept.label[i - from] = kept.label[i];
  kept.n -= from;
}

/// BLAS needs unit stride along rows or columns. True if it lies along the kept axis, not along the summed one.
bool kept_is_fast(const Group& summed, const Side& s, const std::int64_t* dims) {
  return !(summed.stride(s) == 1 || summed.size(dims) == 1);
}
bool takes(const Group& kept, const Group& summed, const Side& s, const std::int64_t* dims) {
  return summed.stride(s) == 1 || kept.stride(s) == 1 || summed.size(dims) == 1 || kept.size(dims) == 1;
}

}  // namespace

ContractionTerms::ContractionTerms(const OpCall& call) {
  const ContractionForm& f = call.attrs.as<ContractionForm>();
  const Side of_a(f.a, call.spec(0), nullptr), of_b(f.b, call.spec(1), nullptr);
  a_is_cotangent = f.origin.cotangent == Cotangent::a;
  std::int64_t dims[kLabels];
  std::fill_n(dims, kLabels, 1);
  for (int i = 0; i < f.a.rank; ++i) dims[f.a.of[i]] = std::max(dims[f.a.of[i]], call.spec(0).dims[i]);
  for (int i = 0; i < f.b.rank; ++i) dims[f.b.of[i]] = std::max(dims[f.b.of[i]], call.spec(1).dims[i]);
  std::uint32_t in_out = 0;
  for (int i = 0; i < f.out.rank; ++i) {
    const int l = f.out.of[i];
    in_out |= 1u << l;
    kept.push(call.out[0]->dims[i], of_a.stride[l], of_b.stride[l]);
  }
  for (int l = 0; l < kLabels; ++l) {
    if (in_out >> l & 1 || !((of_a.has | of_b.has) >> l & 1)) continue;
    summed.push(dims[l], of_a.stride[l], of_b.stride[l]);
    terms *= dims[l];
  }
}

ContractionPlan plan_contraction(const OpCall& call, const std::byte* a_data, const std::byte* b_data, int item,
                                 Rearranger& to_order) {
  const ContractionForm& f = call.attrs.as<ContractionForm>();
  ContractionPlan p{};
  Side a(f.a, call.spec(0), a_data), b(f.b, call.spec(1), b_data), out(f.out, *call.out[0], nullptr);
  std::int64_t dims[kLabels];
  std::fill_n(dims, kLabels, 1);
  for (int i = 0; i < f.a.rank; ++i) dims[f.a.of[i]] = std::max(dims[f.a.of[i]], call.spec(0).dims[i]);
  for (int i = 0; i < f.b.rank; ++i) dims[f.b.of[i]] = std::max(dims[f.b.of[i]], call.spec(1).dims[i]);

  Group batch, rows, cols, summed, summed_b;
  for (int i = 0; i < f.out.rank; ++i) {
    int l = f.out.of[i];
    bool in_a = a.has >> l & 1, in_b = b.has >> l & 1;
    if (in_a && in_b) batch.push(l);
    else if (in_a) rows.push(l);
    else if (in_b) cols.push(l);
  }
  for (int i = 0; i < f.a.rank; ++i)
    if ((a.has & ~out.has) >> f.a.of[i] & 1) summed.push(f.a.of[i]);
  for (int i = 0; i < f.b.rank; ++i)
    if ((b.has & ~out.has) >> f.b.of[i] & 1) summed_b.push(f.b.of[i]);
  if (!(summed.joins(a, dims) && summed.joins(b, dims))) {
    if (summed_b.joins(a, dims) && summed_b.joins(b, dims)) {
      summed = summed_b;
    } else {
      if (!summed.joins(a, dims)) rearrange(a, batch, rows, summed, dims, item, to_order);
      if (!summed.joins(b, dims)) rearrange(b, batch, cols, summed, dims, item, to_order);
    }
  }
  Group loops = batch;
  std::int64_t work = rows.size(dims) * cols.size(dims) * summed.size(dims);
  join_kept(a, out, batch, rows, summed, work, dims, item, to_order, &loops);
  join_kept(b, out, batch, cols, summed, work, dims, item, to_order, &loops);
  if (!takes(rows, summed, a, dims)) rearrange(a, loops, rows, summed, dims, item, to_order);
  if (!takes(cols, summed, b, dims)) rearrange(b, loops, cols, summed, dims, item, to_order);

  for (int i = 0; i < loops.n; ++i) {
    int l = loops.label[i], at = p.batch.rank++;
    p.batch.dims[at] = dims[l];
    p.batch.a[at] = a.stride[l];
    p.batch.b[at] = b.stride[l];
    p.batch.out[at] = out.stride[l];
    p.batch.count *= dims[l];
  }
  // The result is row-major in rows x cols, or in cols x rows.
  if (cols.size(dims) != 1 && cols.stride(out) != 1) {
    std::swap(a, b);
    std::swap(rows, cols);
    std::swap(p.batch.a, p.batch.b);
  }
  GemmShape& m = p.product;
  m.m = rows.size(dims);
  m.n = cols.size(dims);
  m.k = summed.size(dims);
  m.ta = kept_is_fast(summed, a, dims);
  m.tb = !kept_is_fast(summed, b, dims);
  // A leading dimension along an axis of size 1 is never used, but BLAS still checks that it is large enough.
  m.lda = std::max(m.ta ? summed.stride(a) : rows.stride(a), m.ta ? m.m : m.k);
  m.ldb = std::max(m.tb ? cols.stride(b) : summed.stride(b), m.tb ? m.k : m.n);
  m.ldo = std::max(rows.stride(out), m.n);
  p.a = a.data;
  p.b = b.data;
  return p;
}

namespace {
/// Copies nothing; records whether a plan needs a copy.
class NoRearranger final : public Rearranger {
 public:
  const std::byte* copy(const Strided&, const std::byte* from, std::int64_t, int) override {
    asked = true;
    return from;
  }
  bool asked = false;
};
}  // namespace

std::optional<ContractionPlan> plan_with_bias(const OpCall& call, const TensorDesc& bias) {
  const TensorDesc& out = *call.out[0];
  if (call.attrs.as<ContractionForm>().origin.cotangent != Cotangent::neither || bias.dtype != out.dtype ||
      out.numel() == 0 || call.spec(0).numel() == 0)
    return {};
  NoRearranger as_they_are;
  const ContractionPlan plan = plan_contraction(call, call.in[0].data, call.in[1].data, out.dtype.size(), as_they_are);
  if (as_they_are.asked || plan.batch.count != 1 || bias.numel() != plan.product.n) return {};
  return plan;
}

}  // namespace kassette::ops
