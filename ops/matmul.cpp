// ops/matmul.cpp - matmul, dot and batch_dot: one row that contracts labelled axes, whole.
#include "ops/matmul.h"

#include <algorithm>
#include <climits>
#include <type_traits>

#include "core/convert.h"
#include "core/text.h"
#include "devices/cpu/blas.h"
#include "devices/cpu/threads.h"
#include "ops/strided.h"

namespace kassette {
namespace {

// Note [Labelled axes]
// Every axis of a, b and the result carries a label. A label of all three is a batch axis, one of a and b is summed over,
// one of a (or b) and the result stays. All products of the library and all their adjoints are of this form: the adjoint
// for a contracts the cotangent with b and gives the labels of a. Labels depend on ranks alone, never on sizes.
constexpr int kLabels = 16;
constexpr int kOne = 15;   // an axis of size 1 that the result has beside those of a and b

enum class User : int { matmul, dot, batch_dot };
constexpr const char* kUserNames[] = {"matmul", "dot", "batch_dot"};

struct Labels {
  int rank = 0;
  std::uint8_t of[kMaxRank];
  Labels() = default;
  void push(int label) { of[rank++] = static_cast<std::uint8_t>(label); }
};

struct Form {
  Labels a, b, out;
  bool broadcast = false;   // a batch axis of size 1 meets any size
  User user = User::matmul;
};

std::int64_t packed(const Labels& l) {
  std::int64_t bits = 0;
  for (int i = 0; i < l.rank; ++i) bits |= std::int64_t(l.of[i]) << (4 * i);
  return bits;
}
Labels unpacked(std::int64_t bits, int rank) {
  Labels l;
  for (int i = 0; i < rank; ++i) l.push(static_cast<int>(bits >> (4 * i) & 15));
  return l;
}
Attrs encode(const Form& f) {
  Attrs t;
  t.a = packed(f.a) | packed(f.b) << 32;
  t.b = packed(f.out) | std::int64_t(f.a.rank | f.b.rank << 4 | f.out.rank << 8 | f.broadcast << 12 | static_cast<int>(f.user) << 13) << 32;
  return t;
}
Form decode(const Attrs& t) {
  int rest = static_cast<int>(t.b >> 32);
  Form f;
  f.a = unpacked(t.a, rest & 15);
  f.b = unpacked(t.a >> 32, rest >> 4 & 15);
  f.out = unpacked(t.b, rest >> 8 & 15);
  f.broadcast = rest >> 12 & 1;
  f.user = static_cast<User>(rest >> 13 & 3);
  return f;
}

/// A product of two matrices into a matrix, without decoding: transposes as flags.
struct MatrixForm {
  bool plain, swapped, ta, tb;   // swapped: the rows of the result are of the second operand
  explicit MatrixForm(const Attrs& t) : plain(false), swapped(false), ta(false), tb(false) {
    if ((t.b >> 32 & 0xfff) != 0x222) return;
    int a0 = t.a & 15, a1 = t.a >> 4 & 15, b0 = t.a >> 32 & 15, b1 = t.a >> 36 & 15, row = t.b & 15, col = t.b >> 4 & 15;
    swapped = row == b0 || row == b1;
    if (swapped) std::swap(a0, b0), std::swap(a1, b1);
    ta = a1 == row;
    tb = b0 == col;
    plain = (a0 == row || ta) && (b1 == col || tb) && row != b0 && row != b1 && col != a0 && col != a1;
  }
};

// ---- rule ------------------------------------------------------------------------------------------------------------

constexpr std::int64_t kAbsent = -2;

[[noreturn]] __attribute__((noinline, cold)) void fail_sizes(const Call& call, const Form& f, int label, std::int64_t a, std::int64_t b) {
  bool batch = std::find(f.out.of, f.out.of + f.out.rank, label) != f.out.of + f.out.rank;
  fail<ValueError>(kUserNames[static_cast<int>(f.user)], ": ", call.spec(0), " x ", call.spec(1), ": ",
                   !batch ? "inner dimensions differ, " : f.broadcast ? "batch axes do not broadcast, " : "batch sizes differ, ", a, " against ", b);
}

void check_dtypes(const Call& call, const char* user) {
  DType a = call.spec(0).dtype, b = call.spec(1).dtype;
  if (a != b) fail<TypeError>(user, ": ", a, " and ", b, "; cast one of them (K::cast), tensors are not promoted");
  if (a.is_bool()) fail<TypeError>(user, ": bool is not a number; cast it first (K::cast)");
}

void rule(const Call& call, Spec* out) {
  const Spec &a = call.spec(0), &b = call.spec(1);
  if (MatrixForm m(call.attrs); m.plain && a.dtype == b.dtype && !a.dtype.is_bool()) {   // two matrices, sizes known
    const Spec &x = m.swapped ? b : a, &y = m.swapped ? a : b;
    std::int64_t k = x.dims[!m.ta];
    if (k >= 0 && k == y.dims[m.tb]) {
      out->rank = 2;
      out->dtype = a.dtype;
      out->dims[0] = x.dims[m.ta];
      out->dims[1] = y.dims[!m.tb];
      return;
    }
  }
  const Form f = decode(call.attrs);
  check_dtypes(call, kUserNames[static_cast<int>(f.user)]);
  std::int64_t size[kLabels];
  std::fill_n(size, kLabels, kAbsent);
  size[kOne] = 1;
  for (int i = 0; i < f.a.rank; ++i) size[f.a.of[i]] = a.dims[i];
  std::uint32_t in_out = 0;
  for (int i = 0; i < f.out.rank; ++i) in_out |= 1u << f.out.of[i];
  for (int i = 0; i < f.b.rank; ++i) {
    std::int64_t &have = size[f.b.of[i]], n = b.dims[i];
    if (have == kAbsent || have == n) {
      have = n;
      continue;
    }
    if (f.broadcast && (in_out >> f.b.of[i] & 1) && (have == 1 || n == 1)) {
      if (have == 1) have = n;
    } else if (have < 0) {
      have = n;
    } else if (n >= 0) {
      fail_sizes(call, f, f.b.of[i], have, n);
    }
  }
  out->rank = static_cast<std::int8_t>(f.out.rank);
  out->dtype = a.dtype;
  for (int i = 0; i < f.out.rank; ++i) out->dims[i] = size[f.out.of[i]];
}

// ---- kernel ----------------------------------------------------------------------------------------------------------

/// An operand with its strides by label; 0 where it does not have the label or repeats along it.
struct Side {
  const std::byte* data;
  std::int64_t stride[kLabels] = {};
  std::uint32_t has = 0;   // labels along which it has more than one element
  Ref<Storage> copy;

  Side(const Labels& labels, const Spec& spec, const std::byte* bytes) : data(bytes) {
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
  /// The stride of the joined axis; 0 where the group is empty.
  std::int64_t stride(const Side& s) const { return n ? s.stride[label[n - 1]] : 0; }
  bool joins(const Side& s, const std::int64_t* dims, int from = 0) const {
    for (int i = from; i + 1 < n; ++i)
      if (s.stride[label[i]] != s.stride[label[i + 1]] * dims[label[i + 1]]) return false;
    return true;
  }
};

/// Copies an operand so that its axes stand in the order of the three groups.
void rearrange(Side& s, const Group& batch, const Group& outer, const Group& inner, const std::int64_t* dims, int item) {
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
  Ref<Storage> copy = Storage::allocate(count * item, cpu);
  copy_strided(layout, s.data, static_cast<std::byte*>(copy->data), item);
  std::copy_n(to, kLabels, s.stride);
  s.data = static_cast<const std::byte*>(copy->data);
  s.copy = std::move(copy);
}

/// What has to be multiplied: matrices that repeat.
struct Plan {
  Product product;
  Repeats repeats;
  Side a, b;
  bool swapped;   // the result is written transposed: operands change places
};

/// One side of the product. kept: its axis in the result; outer axes that cannot join it become repeats.
void join_kept(Side& s, Side& out, const Group& batch, Group& kept, const Group& summed, std::int64_t work, const std::int64_t* dims, int item,
               Group* loops) {
  int from = 0;
  while (from + 1 < kept.n && !(kept.joins(s, dims, from) && kept.joins(out, dims, from))) ++from;
  // Many small products cost more than one copy that makes them one, if the result lets them join.
  if (from > 0 && kept.joins(out, dims)) {
    std::int64_t inner = 1, total = kept.size(dims);
    for (int i = from; i < kept.n; ++i) inner *= dims[kept.label[i]];
    if (inner < 32 && work / total * inner < (1 << 14)) {
      rearrange(s, batch, kept, summed, dims, item);
      from = 0;
    }
  }
  for (int i = 0; i < from; ++i) loops->push(kept.label[i]);
  for (int i = from; i < kept.n; ++i) kept.label[i - from] = kept.label[i];
  kept.n -= from;
}

/// A matrix that BLAS takes has one stride of 1. Answers whether it is that of the axis that stays.
bool kept_is_fast(const Group& summed, const Side& s, const std::int64_t* dims) {
  return !(summed.stride(s) == 1 || summed.size(dims) == 1);
}
bool takes(const Group& kept, const Group& summed, const Side& s, const std::int64_t* dims) {
  return summed.stride(s) == 1 || kept.stride(s) == 1 || summed.size(dims) == 1 || kept.size(dims) == 1;
}

Plan make_plan(const Call& call, const Form& f, const std::byte* a_data, const std::byte* b_data, int item) {
  const Spec& spec = *call.out[0];
  Plan p{{}, {}, Side(f.a, call.spec(0), a_data), Side(f.b, call.spec(1), b_data), false};
  Side out(f.out, spec, nullptr);
  std::int64_t dims[kLabels];
  std::fill_n(dims, kLabels, 1);
  for (int i = 0; i < f.a.rank; ++i) dims[f.a.of[i]] = std::max(dims[f.a.of[i]], call.spec(0).dims[i]);
  for (int i = 0; i < f.b.rank; ++i) dims[f.b.of[i]] = std::max(dims[f.b.of[i]], call.spec(1).dims[i]);

  Group batch, rows, cols, summed, summed_b;
  for (int i = 0; i < f.out.rank; ++i) {
    int l = f.out.of[i];
    bool in_a = p.a.has >> l & 1, in_b = p.b.has >> l & 1;
    if (in_a && in_b) batch.push(l);
    else if (in_a) rows.push(l);
    else if (in_b) cols.push(l);
  }
  for (int i = 0; i < f.a.rank; ++i)
    if ((p.a.has & ~out.has) >> f.a.of[i] & 1) summed.push(f.a.of[i]);
  for (int i = 0; i < f.b.rank; ++i)
    if ((p.b.has & ~out.has) >> f.b.of[i] & 1) summed_b.push(f.b.of[i]);
  if (!(summed.joins(p.a, dims) && summed.joins(p.b, dims))) {
    if (summed_b.joins(p.a, dims) && summed_b.joins(p.b, dims)) {
      summed = summed_b;
    } else {
      if (!summed.joins(p.a, dims)) rearrange(p.a, batch, rows, summed, dims, item);
      if (!summed.joins(p.b, dims)) rearrange(p.b, batch, cols, summed, dims, item);
    }
  }
  Group loops = batch;
  std::int64_t work = rows.size(dims) * cols.size(dims) * summed.size(dims);
  join_kept(p.a, out, batch, rows, summed, work, dims, item, &loops);
  join_kept(p.b, out, batch, cols, summed, work, dims, item, &loops);
  if (!takes(rows, summed, p.a, dims)) rearrange(p.a, loops, rows, summed, dims, item);
  if (!takes(cols, summed, p.b, dims)) rearrange(p.b, loops, cols, summed, dims, item);

  for (int i = 0; i < loops.n; ++i) {
    int l = loops.label[i], at = p.repeats.rank++;
    p.repeats.dims[at] = dims[l];
    p.repeats.a[at] = p.a.stride[l];
    p.repeats.b[at] = p.b.stride[l];
    p.repeats.out[at] = out.stride[l];
    p.repeats.count *= dims[l];
  }
  // The result is row-major in rows x cols, or in cols x rows.
  p.swapped = cols.size(dims) != 1 && cols.stride(out) != 1;
  if (p.swapped) {
    std::swap(p.a, p.b);
    std::swap(rows, cols);
    std::swap(p.repeats.a, p.repeats.b);
  }
  Product& m = p.product;
  m.m = rows.size(dims);
  m.n = cols.size(dims);
  m.k = summed.size(dims);
  m.ta = kept_is_fast(summed, p.a, dims);
  m.tb = !kept_is_fast(summed, p.b, dims);
  // Along an axis of size 1 a leading dimension means nothing, and BLAS wants it large enough all the same.
  m.lda = std::max(m.ta ? summed.stride(p.a) : rows.stride(p.a), m.ta ? m.m : m.k);
  m.ldb = std::max(m.tb ? cols.stride(p.b) : summed.stride(p.b), m.tb ? m.k : m.n);
  m.ldo = std::max(rows.stride(out), m.n);
  return p;
}

/// Integers wrap: sums of products modulo two to the width.
template <class T>
void multiply_integers(const Product& p, const Repeats& r, const T* a, const T* b, T* out) {
  using U = std::make_unsigned_t<std::conditional_t<(sizeof(T) < 4), int, T>>;
  std::int64_t ai = p.ta ? 1 : p.lda, ak = p.ta ? p.lda : 1, bk = p.tb ? 1 : p.ldb, bj = p.tb ? p.ldb : 1;
  parallel_for(r.count * p.m, std::max<std::int64_t>(1, (1 << 15) / (p.n * p.k + 1)), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t at = begin; at < end; ++at) {
      std::int64_t i = at % p.m, rest = at / p.m, oa = i * ai, ob = 0, oo = i * p.ldo;
      for (int d = r.rank - 1; d >= 0; --d) {
        std::int64_t c = rest % r.dims[d];
        rest /= r.dims[d];
        oa += c * r.a[d];
        ob += c * r.b[d];
        oo += c * r.out[d];
      }
      T* o = out + oo;
      std::fill_n(o, p.n, T(0));
      for (std::int64_t k = 0; k < p.k; ++k) {
        U x = static_cast<U>(a[oa + k * ak]);
        const T* y = b + ob + k * bk;
        if (bj == 1)
          for (std::int64_t j = 0; j < p.n; ++j) o[j] = static_cast<T>(static_cast<U>(o[j]) + x * static_cast<U>(y[j]));
        else
          for (std::int64_t j = 0; j < p.n; ++j) o[j] = static_cast<T>(static_cast<U>(o[j]) + x * static_cast<U>(y[j * bj]));
      }
    }
  });
}

template <class T>
void run(const Call& call, const std::byte* a, const std::byte* b, T* out) {
  if (MatrixForm f(call.attrs); f.plain) {
    const Spec &x = call.spec(f.swapped), &y = call.spec(!f.swapped), &o = *call.out[0];
    if (f.swapped) std::swap(a, b);
    Product p{o.dims[0], o.dims[1], x.dims[!f.ta], f.ta, f.tb, x.dims[1], y.dims[1], o.dims[1]};
    if constexpr (std::is_floating_point_v<T>) multiply(p, {}, reinterpret_cast<const T*>(a), reinterpret_cast<const T*>(b), out);
    else multiply_integers(p, {}, reinterpret_cast<const T*>(a), reinterpret_cast<const T*>(b), out);
    return;
  }
  Plan p = make_plan(call, decode(call.attrs), a, b, sizeof(T));
  auto *x = reinterpret_cast<const T*>(p.a.data), *y = reinterpret_cast<const T*>(p.b.data);
  if constexpr (std::is_floating_point_v<T>) multiply(p.product, p.repeats, x, y, out);
  else multiply_integers(p.product, p.repeats, x, y, out);
}

/// Half types: the whole product in float32, rounded once.
void run_half(const Call& call) {
  DType half = call.spec(0).dtype;
  Ref<Storage> wide[3];
  for (int i = 0; i < 2; ++i) {
    std::int64_t n = call.spec(i).numel();
    wide[i] = Storage::allocate(n * 4, cpu);
    convert(wide[i]->data, float32, call.in[i].data, half, n);
  }
  std::int64_t n = call.out[0]->numel();
  wide[2] = Storage::allocate(n * 4, cpu);
  run(call, static_cast<const std::byte*>(wide[0]->data), static_cast<const std::byte*>(wide[1]->data), static_cast<float*>(wide[2]->data));
  convert(call.out[0]->data(), half, wide[2]->data, float32, n);
}

void kernel(const Call& call) {
  const Body& out = *call.out[0];
  std::int64_t n = out.numel();
  if (n == 0) return;
  DType dtype = out.dtype;
  if (call.spec(0).numel() == 0) {   // sums of nothing: an empty operand under a result that is not
    zero_bytes(out.data(), out.bytes());
    return;
  }
  if (dtype == float32) run(call, call.in[0].data, call.in[1].data, call.out_as<float>());
  else if (dtype == float64) run(call, call.in[0].data, call.in[1].data, call.out_as<double>());
  else if (dtype.is_float()) run_half(call);
  else
    dispatch(dtype, [&](auto* p) {
      using T = std::remove_pointer_t<decltype(p)>;
      if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) run(call, call.in[0].data, call.in[1].data, call.out_as<T>());
    });
}

// ---- adjoint ---------------------------------------------------------------------------------------------------------

void vjp(const Rewind& r) {
  const Form f = decode(r.attrs);
  if (r.wants(0)) {
    Form g = f;
    g.a = f.out;
    g.out = f.a;
    r.din(0) = apply1(matmul_row, encode(g), {r.dy(), r.in(1)});
  }
  if (r.wants(1)) {
    Form g = f;
    g.b = f.out;
    g.out = f.b;
    r.din(1) = apply1(matmul_row, encode(g), {r.in(0), r.dy()});
  }
}

// ---- forms -----------------------------------------------------------------------------------------------------------

int rank_of(const Tensor& x, const char* user, const char* which) {
  if (!x.defined()) fail<ValueError>(user, ": ", which, " is an empty Tensor (an uninitialised variable?)");
  int rank = Access::body(x).rank;
  if (rank < 0) fail<ValueError>(user, ": the rank of ", which, " is unknown; give the placeholder an ndim");
  return rank;
}
const Spec& spec_of(const Tensor& x) { return Access::body(x); }

}  // namespace

constinit const OpDef matmul_row{.name = "matmul", .rule = rule, .cpu = kernel, .vjp = vjp, .saves_in = 3};

Tensor matmul(const Tensor& a, const Tensor& b, bool transpose_a, bool transpose_b) {
  int ra = rank_of(a, "matmul", "the first operand"), rb = rank_of(b, "matmul", "the second operand");
  if (ra < 2 || rb < 2) fail<ValueError>("matmul: ", spec_of(a), " x ", spec_of(b), ": both need at least two axes");
  Form f;
  f.broadcast = true;
  int batches = std::max(ra, rb) - 2, m = batches, k = batches + 1, n = batches + 2;
  for (int i = batches - (ra - 2); i < batches; ++i) f.a.push(i);
  for (int i = batches - (rb - 2); i < batches; ++i) f.b.push(i);
  for (int i = 0; i < batches; ++i) f.out.push(i);
  f.a.push(transpose_a ? k : m), f.a.push(transpose_a ? m : k);
  f.b.push(transpose_b ? n : k), f.b.push(transpose_b ? k : n);
  f.out.push(m), f.out.push(n);
  return apply1(matmul_row, encode(f), {a, b});
}

Tensor dot(const Tensor& x, const Tensor& y) {
  int rx = rank_of(x, "dot", "x"), ry = rank_of(y, "dot", "y");
  if (rx == 2 && ry == 2) {   // labels 0 1, 1 2 -> 0 2, as below
    Attrs t;
    t.a = 0x10 | std::int64_t(0x21) << 32;
    t.b = 0x20 | std::int64_t(0x222 | static_cast<int>(User::dot) << 13) << 32;
    return apply1(matmul_row, t, {x, y});
  }
  if (rx < 1 || ry < 1) fail<ValueError>("dot: ", spec_of(x), " x ", spec_of(y), ": both need at least one axis; use * for a number");
  if (rx + ry - 2 > kMaxRank) fail<ValueError>("dot: ", spec_of(x), " x ", spec_of(y), ": the result has rank ", rx + ry - 2, ", and 8 is the most");
  Form f;
  f.user = User::dot;
  for (int i = 0; i < rx; ++i) f.a.push(i);
  for (int i = 0; i + 1 < rx; ++i) f.out.push(i);
  int summed = std::max(0, ry - 2), next = rx;
  for (int i = 0; i < ry; ++i) {
    f.b.push(i == summed ? rx - 1 : next);
    if (i != summed) f.out.push(next++);
  }
  return apply1(matmul_row, encode(f), {x, y});
}

Tensor batch_dot(const Tensor& x, const Tensor& y, int x_axis, int y_axis) {
  int rx = rank_of(x, "batch_dot", "x"), ry = rank_of(y, "batch_dot", "y");
  if (rx < 2 || ry < 2) fail<ValueError>("batch_dot: ", spec_of(x), " x ", spec_of(y), ": both need at least two axes, the batch and another");
  auto normal = [](int axis, int rank, const char* which) {
    if (axis < -rank || axis >= rank) fail<ValueError>("batch_dot: axis ", axis, " is out of range for ", which, " of rank ", rank);
    if (axis == 0 || axis == -rank) fail<ValueError>("batch_dot: axis ", axis, " of ", which, " is the batch axis; it takes part in no sum");
    return axis < 0 ? axis + rank : axis;
  };
  x_axis = normal(x_axis, rx, "x");
  y_axis = normal(y_axis, ry, "y");
  if (rx + ry - 3 > kMaxRank) fail<ValueError>("batch_dot: ", spec_of(x), " x ", spec_of(y), ": the result has rank ", rx + ry - 3, ", and 8 is the most");
  Form f;
  f.user = User::batch_dot;
  for (int i = 0; i < rx; ++i) {
    f.a.push(i);
    if (i != x_axis) f.out.push(i);
  }
  int next = rx;
  for (int i = 0; i < ry; ++i) {
    f.b.push(i == 0 ? 0 : i == y_axis ? x_axis : next);
    if (i != 0 && i != y_axis) f.out.push(next++);
  }
  if (f.out.rank == 1) f.out.push(kOne);
  return apply1(matmul_row, encode(f), {x, y});
}

}  // namespace kassette
