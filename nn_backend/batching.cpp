// nn_backend/batching.cpp - a function of one row run for all rows at once.
#include "nn_backend/batching.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "autograd/loops/trace.h"
#include "autograd/tape/deferred.h"
#include "core/log.h"
#include "core/sparse.h"
#include "core/text.h"
#include "ops/convolution/conv.h"
#include "ops/convolution/pool.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/compare.h"
#include "ops/elementwise/ternary.h"
#include "ops/elementwise/unary.h"
#include "ops/engine/axes.h"
#include "ops/engine/op.h"
#include "ops/engine/stop.h"
#include "ops/fft/fft.h"
#include "ops/linalg/linalg.h"
#include "ops/order/order.h"
#include "ops/product/contraction.h"
#include "ops/product/matmul.h"
#include "ops/reduce/reduce.h"
#include "ops/reduce/reduce_arg.h"
#include "ops/reduce/scan.h"
#include "ops/reduce/scan_attrs.h"
#include "ops/reduce/variance.h"
#include "ops/shape/checked.h"
#include "ops/shape/index.h"
#include "ops/shape/like.h"
#include "ops/shape/put.h"
#include "ops/shape/shaping.h"
#include "ops/softmax/softmax.h"

namespace kassette {
namespace {

using namespace ops;

// Note [Batching]
// A function of one row is recorded on placeholders, as the body of a loop is, and what was recorded is run for all
// rows at once: each op whose inputs depend on the row gets these inputs with an axis for the rows in front, and a rule
// says what the op is then. Most rules move the axes in its attributes by one. Ops that draw random numbers, change a
// variable or have no rule are run row by row, by map_fn, and with them the whole function.

struct Value {
  Tensor x;
  bool batched = false;
};

/// A recorded op of one row, with its inputs for all rows.
struct Op {
  const Node& node;
  std::int64_t rows;
  std::vector<Value> in;
  std::vector<const TensorDesc*> result;  // of one row; null if it is not used

  const TensorSpec& row(std::size_t i) const { return node.in()[i]; }
  bool shape_only(std::size_t i) const { return has_bit(node.op->shape_only, static_cast<int>(i)); }
  /// The shape of one row behind an axis for the rows. With axes of size 1 between them, one row has `rank` axes.
  Shape with_rows(const TensorSpec& s, int rank = 0) const {
    std::int64_t dims[kMaxRank];
    int n = 0;
    dims[n++] = rows;
    while (n <= rank - s.rank) dims[n++] = 1;
    std::copy_n(s.dims, s.rank, dims + n);
    return Shape(dims, n + s.rank);
  }
  /// Input i with axes of size 1 behind that of the rows, so that one row has `rank` axes; the input itself if all rows
  /// share it.
  Tensor aligned(std::size_t i, int rank) const {
    if (!in[i].batched || row(i).rank >= rank) return in[i].x;
    return reshape(in[i].x, with_rows(row(i), rank));
  }
  /// Input i for each row.
  Tensor whole(std::size_t i) const {
    if (in[i].batched) return in[i].x;
    const Tensor x = shape_only(i) ? number_like(0, in[i].x) : in[i].x;
    return broadcast_to(x, with_rows(row(i)));
  }
  std::vector<Tensor> all_whole() const {
    std::vector<Tensor> all;
    for (std::size_t i = 0; i < in.size(); ++i) all.push_back(whole(i));
    return all;
  }
};
using Rule = Tensors (*)(const Op&);

Tensors run(const Node& node, const Attrs& attrs, const std::vector<Tensor>& in) {
  std::vector<In> inputs(in.begin(), in.end());
  Tensors out;
  for (int i = 0; i < node.n_out; ++i) out.push_back(Tensor());
  apply(*node.op, attrs, inputs.data(), static_cast<int>(inputs.size()), &out[0], node.n_out);
  return out;
}
Tensors run(const Op& op, const Attrs& attrs) { return run(op.node, attrs, op.all_whole()); }

/// Axes counted from the end stay where they are.
template <class Axis>
Axis moved(Axis axis) {
  return axis < 0 ? axis : axis + 1;
}
AxisSet moved(const AxisSet& axes, int rank) {
  AxisSet to;
  to.front = static_cast<std::uint8_t>(axes.mask(rank) << 1);
  to.keepdims = axes.keepdims;
  return to;
}
bool known(const TensorDesc* d) { return d && d->known() && d->rank < kMaxRank; }

// ---- rules: an empty list if there is none for this call
Tensors elementwise(const Op& op) {
  int rank = 0;
  for (std::size_t i = 0; i < op.in.size(); ++i) rank = std::max<int>(rank, op.row(i).rank);
  std::vector<Tensor> in;
  for (std::size_t i = 0; i < op.in.size(); ++i) in.push_back(op.aligned(i, rank));
  return run(op.node, op.node.attrs, in);
}
Tensors reshaped(const Op& op) {
  if (!known(op.result[0]) || !op.in[0].batched) return {};
  return reshape(op.in[0].x, op.with_rows(*op.result[0]));
}
Tensors broadcast(const Op& op) {
  if (!known(op.result[0]) || !op.in[0].batched) return {};
  return broadcast_to(op.aligned(0, op.result[0]->rank), op.with_rows(*op.result[0]));
}
Tensors summed(const Op& op) {
  if (!known(op.result[0]) || !op.in[0].batched) return {};
  const TensorSpec &x = op.row(0), &y = *op.result[0];
  ReduceAttrs attrs;
  for (int i = 0; i < x.rank; ++i) {
    const int j = i - (x.rank - y.rank);
    if (j < 0 || (y.dims[j] == 1 && x.dims[i] != 1)) attrs.axes.front |= static_cast<std::uint8_t>(2 << i);
  }
  return reshape(apply1(sum_op, attrs, {op.in[0].x}), op.with_rows(y));
}
Tensors permuted(const Op& op) {
  const auto attrs = op.node.attrs.as<PermuteAttrs>();
  const int rank = op.row(0).rank;
  PermuteAttrs to{};
  to.pattern.push(0);
  for (int i = 0; i < rank; ++i) to.pattern.push(1 + (attrs.reversed ? rank - 1 - i : attrs.pattern.at[i]));
  return run(op, to);
}
Tensors reversed(const Op& op) {
  ReverseAttrs attrs = op.node.attrs.as<ReverseAttrs>();
  for (int i = 0; i < attrs.axes.size; ++i) attrs.axes.at[i] = static_cast<std::int8_t>(moved<int>(attrs.axes.at[i]));
  return run(op, attrs);
}
Tensors padded(const Op& op) {
  Pads pads, given = pads_of(op.node.attrs);
  pads.rank = given.rank + 1;
  std::copy_n(given.before, given.rank, pads.before + 1);
  std::copy_n(given.after, given.rank, pads.after + 1);
  return pad(op.in[0].x, pads);
}
/// Ops that work along a set of axes, which are those of input number `input`.
template <class A, int input>
Tensors along_axes(const Op& op) {
  A attrs = op.node.attrs.as<A>();
  const int rank = op.row(input).rank;
  if (rank == 0) return {};
  attrs.axes = moved(attrs.axes, rank);
  return run(op, attrs);
}
/// argmax and argmin: along an axis or, without one, in the flat row.
Tensors position_of(const Op& op) {
  ReduceAttrs attrs = op.node.attrs.as<ReduceAttrs>();
  if (!attrs.axes.all) return along_axes<ReduceAttrs, 0>(op);
  attrs.axes = {.front = 2};
  const Tensor flat = flatten(op.in[0].x, 1);
  return reshape(run(op.node, attrs, {flat})[0], op.with_rows(*op.result[0]));
}
/// Ops that work along one axis.
template <class A>
Tensors along_axis(const Op& op) {
  A attrs = op.node.attrs.as<A>();
  attrs.axis = moved(attrs.axis);
  return run(op, attrs);
}
Tensors indexed(const Op& op) {
  const Attrs& attrs = op.node.attrs;
  auto list = Ref<IndexList>::adopt(new IndexList);
  list->push({.kind = IndexList::kSlice});
  if (attrs.extra) {
    const auto& given = attrs.extra->as<IndexList>();
    if (given.n == IndexList::kParts) return {};
    for (int i = 0; i < given.n; ++i) list->push(given.parts[i]);
  } else {
    list->push({.kind = IndexList::kInt, .start = attrs.as<IndexAttrs>().at});
  }
  return run(op, Attrs(Ref<Extra>(list.get())));
}
/// gather and its adjoint, if all rows share the indices, input 1; or gather along axis 0 of a table that all rows
/// share, each with its own indices. The others would need the number of the row as one more index.
Tensors gathered(const Op& op) {
  GatherAttrs attrs = op.node.attrs.as<GatherAttrs>();
  if (op.in[1].batched) {
    const bool table = op.node.op == &gather_op && !op.in[0].batched && from_front(attrs.axis, op.row(0).rank) == 0;
    return table ? run(op.node, attrs, {op.in[0].x, op.in[1].x}) : Tensors();
  }
  attrs.axis = moved(attrs.axis);
  std::vector<Tensor> in = op.all_whole();
  in[1] = op.in[1].x;
  return run(op.node, attrs, in);
}
Tensors put_at(const Op& op) {
  if (op.in[1].batched) return {};
  GatherAttrs attrs = op.node.attrs.as<GatherAttrs>();
  attrs.axis = moved(attrs.axis);
  std::vector<Tensor> in = {op.whole(0), op.in[1].x, op.in[2].x};
  if (op.row(2).rank == 0 && op.in[2].batched) return {};  // one number for each row
  if (op.row(2).rank) in[2] = op.whole(2);
  return run(op.node, attrs, in);
}
Tensors taken_last(const Op& op) {
  if (op.in[1].batched) return {};
  GatherAttrs attrs = op.node.attrs.as<GatherAttrs>();
  attrs.axis = moved(attrs.axis);
  return run(op.node, attrs, {op.in[0].x, op.in[1].x});
}
/// A contraction, in which the rows are one more label: Note [Labelled axes].
Tensors contracted(const Op& op) {
  ContractionForm form = op.node.attrs.as<ContractionForm>();
  int label = 0;
  for (const Labels* l : {&form.a, &form.b})
    for (int i = 0; i < l->rank; ++i) label = std::max(label, l->of[i] + 1);
  if (label >= ops::kNewAxis || form.out.rank == kMaxRank) return {};
  const auto front = [&](Labels& l) {
    Labels with;
    with.push(label);
    for (int i = 0; i < l.rank; ++i) with.push(l.of[i]);
    l = with;
  };
  if (op.in[0].batched) front(form.a);
  if (op.in[1].batched) front(form.b);
  front(form.out);
  return run(op.node, form, {op.in[0].x, op.in[1].x});
}
/// Factorisations, which take batches of matrices. Where ranks differ the operand of lower rank is not a matrix.
Tensors of_matrices(const Op& op) {
  for (std::size_t i = 1; i < op.in.size(); ++i)
    if (op.row(i).rank != op.row(0).rank) return {};
  return run(op, op.node.attrs);
}
Tensors transformed(const Op& op) {
  FftAttrs attrs = op.node.attrs.as<FftAttrs>();
  ++attrs.axis;
  return run(op, attrs);
}
/// Convolution and pooling of batches: the samples of all rows are one batch. The kernel must be the same for all.
Tensors of_samples(const Op& op) {
  if (!known(op.result[0]) || !op.in[0].batched) return {};
  TensorSpec together = op.row(0);
  together.dims[0] *= op.rows;
  std::vector<Tensor> in{reshape(op.in[0].x, Shape(together.dims, together.rank))};
  for (std::size_t i = 1; i < op.in.size(); ++i) {
    if (op.in[i].batched) return {};
    in.push_back(op.in[i].x);
  }
  return reshape(run(op.node, op.node.attrs, in)[0], op.with_rows(*op.result[0]));
}

const std::unordered_map<const OpDef*, Rule>& rules() {
  static const auto* const all = [] {
    auto* made = new std::unordered_map<const OpDef*, Rule>;
    const auto add = [&](Rule rule, std::initializer_list<const OpDef*> list) {
      for (const OpDef* op : list) made->emplace(op, rule);
    };
    for (const OpDef& op : unary_op_defs) add(elementwise, {&op});
    for (const OpDef& op : binary_op_defs) add(elementwise, {&op});
    for (const OpDef& op : compare_op_defs) add(elementwise, {&op});
    add(elementwise, {&cast_op, &where_op, &betainc_op, &logical_not_op, &identity_op, &stop_gradient_op, &to_op});
    add(reshaped,
        {&reshape_op, &reshape_like_op, &expand_dims_op, &squeeze_op, &flatten_op, &assert_shape_op, &check_shapes_op});
    add(broadcast, {&broadcast_like_op, &broadcast_to_op});
    add(summed, {&sum_to_like_op});
    add(permuted, {&permute_op});
    add(reversed, {&reverse_op});
    add(padded, {&pad_op});
    add(along_axes<ReduceAttrs, 0>,
        {&sum_op, &prod_op, &max_op, &min_op, &mean_op, &var_op, &std_op, &center_op, &any_op, &all_op});
    add(position_of, {&argmax_op, &argmin_op});
    add(along_axes<ReduceAttrs, 1>, {&unreduce_op});
    add(along_axes<SoftmaxAttrs, 0>, {&softmax_op, &log_softmax_op, &logsumexp_op});
    add(along_axes<SoftmaxAttrs, 1>, {&softmax_grad_op, &logsumexp_grad_op});
    add(along_axes<ScanAttrs, 0>, {&cumsum_op, &cumprod_op, &recurrence_op, &shift_op});
    add(along_axis<AxisAttrs>, {&concatenate_op, &stack_op, &take_places_op, &put_places_like_op});
    add(along_axis<SplitAttrs>, {&split_like_op, &unstack_op});
    add(along_axis<SortAttrs>, {&sort_op, &argsort_op});
    add(along_axis<TopKAttrs>, {&top_k_op});
    add(along_axis<RepeatAttrs>, {&repeat_op, &repeat_grad_like_op});
    add(indexed, {&index_op, &index_grad_like_op});
    add(gathered, {&gather_op, &gather_grad_like_op});
    add(put_at, {&index_set_op, &index_add_op, &index_multiply_op, &index_min_op, &index_max_op});
    add(taken_last, {&take_last_op});
    add(contracted, {&matmul_op});
    add(of_matrices, {&cholesky_op, &triangular_solve_op, &solve_op, &slogdet_op, &lu_op, &qr_op, &eigh_op,
                      &eigvalsh_op, &svd_op, &svdvals_op, &eig_op});
    add(transformed, {&fft_op, &fft_like_op});
    add([](const Op& op) { return run(op, op.node.attrs); }, {&one_hot_op});
    add(of_samples, {&convolution_op, &max_pool_op, &avg_pool_op});
    return made;
  }();
  return *all;
}

class Batch {
 public:
  Batch(const Tensors& args, const Tensors& stand_ins, std::uint8_t depth, std::int64_t rows)
      : rows_(rows), depth_(depth) {
    for (std::int64_t i = 0; i < args.size(); ++i)
      values_[{Access::desc(stand_ins[i]).node.get(), 0}] = {args[i], true};
  }
  Tensor run(const Tensor& y) {
    if (!record(y)) return Tensor();
    for (const Node* n : order_)
      if (!compute(*n)) return Tensor();
    const Value v = value_of(Access::desc(y));
    return v.batched ? v.x : broadcast_to(v.x, Op{*order_.back(), rows_, {}, {}}.with_rows(Access::desc(y)));
  }

 private:
  using Key = std::pair<const Node*, int>;

  bool in_body(const TensorDesc& b) const { return b.node && b.depth >= depth_; }
  Value value_of(const TensorDesc& b) const {
    if (!in_body(b)) return {Access::wrap(b), false};
    return values_.at({b.node.get(), b.out});
  }
  /// Lists the ops of the body that y comes from. False if one cannot be batched.
  bool record(const Tensor& y) {
    std::vector<const Node*> stack;
    const auto look = [&](const TensorDesc& b) {
      if (!in_body(b)) return;
      const Key key{b.node.get(), b.out};
      ++uses_[key];
      if (values_.count(key)) return;
      results_.emplace(key, &b);
      if (seen_.insert(key.first).second) stack.push_back(key.first);
    };
    look(Access::desc(y));
    while (!stack.empty()) {
      const Node* n = stack.back();
      stack.pop_back();
      if (!n->op || autograd::is_deferred(*n)) return none(n);
      if (n->op->traits & (kMakesKey | kDraws | kEffect | kPrints)) return none(n);
      order_.push_back(n);
      for (std::uint32_t i = 0; i < n->n_in; ++i) {
        const TensorDesc& b = n->in()[i];
        if (!b.known() || b.rank + 1 > kMaxRank || (b.node && !b.node->op && in_body(b) && !is_argument(b)))
          return none(n);
        look(b);
      }
    }
    std::sort(order_.begin(), order_.end(), [](const Node* a, const Node* b) { return a->seq < b->seq; });
    std::unordered_set<const Node*> differ;  // from row to row
    for (const Node* n : order_) {
      bool any = false;
      for (std::uint32_t i = 0; i < n->n_in; ++i) {
        const TensorDesc& b = n->in()[i];
        if (in_body(b) && !has_bit(n->op->shape_only, i)) any = any || is_argument(b) || differ.count(b.node.get());
      }
      if (any && !rules().count(n->op)) return none(n);
      if (any) differ.insert(n);
    }
    return !order_.empty();
  }
  bool is_argument(const TensorDesc& b) const { return values_.count({b.node.get(), b.out}) > 0; }
  static bool none(const Node* n) {
    if (log_enabled(LogLevel::debug))
      log_debug(text("vmap: row by row, as ", n->op ? n->op->name : "a placeholder", " has no rule for all rows"));
    return false;
  }
  bool compute(const Node& n) {
    Op op{n, rows_, {}, {}};
    bool batched = false;
    for (std::uint32_t i = 0; i < n.n_in; ++i) {
      op.in.push_back(value_of(n.in()[i]));
      batched = batched || (op.in[i].batched && !op.shape_only(i));
    }
    for (int i = 0; i < n.n_out; ++i) {
      const auto found = results_.find({&n, i});
      op.result.push_back(found == results_.end() ? nullptr : found->second);
    }
    Tensors out;
    if (batched) {
      out = rules().at(n.op)(op);
      if (out.empty()) return none(&n);
    } else {
      std::vector<Tensor> in;
      for (std::size_t i = 0; i < op.in.size(); ++i) {
        // Only its shape is read: that of one row.
        in.push_back(!op.in[i].batched
                         ? op.in[i].x
                         : broadcast_to(number_like(0, op.in[i].x), Shape(op.row(i).dims, op.row(i).rank)));
      }
      out = kassette::run(n, n.attrs, in);
    }
    for (int i = 0; i < n.n_out; ++i)
      if (op.result[static_cast<std::size_t>(i)]) values_[{&n, i}] = {out[i], batched};
    for (std::uint32_t i = 0; i < n.n_in; ++i)
      if (const Key key{n.in()[i].node.get(), n.in()[i].out}; in_body(n.in()[i]) && --uses_[key] == 0)
        values_.erase(key);
    return true;
  }

  const std::int64_t rows_;
  const std::uint8_t depth_;
  std::map<Key, Value> values_;  // until they are used for the last time
  std::map<Key, int> uses_;
  std::map<Key, const TensorDesc*> results_;
  std::unordered_set<const Node*> seen_;
  std::vector<const Node*> order_;
};

}  // namespace

Tensor batched(const Callable<Tensor(const Tensors&)>& f, const Tensors& args, DType* dtype) {
  std::int64_t rows = -1;
  for (const Tensor& x : args) {
    if (!x.defined() || is_sparse(x)) return Tensor();
    const TensorDesc& b = Access::desc(x);
    if (!b.known() || b.rank == 0 || (rows >= 0 && b.dims[0] != rows)) return Tensor();
    rows = b.dims[0];
  }
  Tensors stand_ins;
  Tensor y;
  std::uint8_t depth;
  {
    const autograd::BodyScope body("vmap", true);
    depth = context().depth;
    for (const Tensor& x : args) {
      TensorSpec row = Access::desc(x);
      --row.rank;
      std::copy_n(Access::desc(x).dims + 1, row.rank, row.dims);
      stand_ins.push_back(autograd::stand_in(row, x.device()));
    }
    try {
      y = f(stand_ins);
    } catch (const Error& e) {
      // It may read values or change a variable, as it can row by row. If it is wrong, it fails there too.
      if (log_enabled(LogLevel::debug)) log_debug(text("vmap: row by row, as f cannot be recorded: ", e.what()));
      return Tensor();
    }
  }
  if (!y.defined() || is_sparse(y)) return Tensor();
  *dtype = y.dtype();
  for (std::int64_t i = 0; i < stand_ins.size(); ++i)
    if (Access::desc(y).node == Access::desc(stand_ins[i]).node) return args[i];
  if (!Access::desc(y).known() || Access::desc(y).rank + 1 > kMaxRank) return Tensor();
  return Batch(args, stand_ins, depth, rows).run(y);
}

}  // namespace kassette
