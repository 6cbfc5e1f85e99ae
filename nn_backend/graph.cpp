// nn_backend/graph.cpp - gradients, functions and the scopes of the tape.
#include <kassette/backend/config.h>
#include <kassette/backend/creation.h>
#include <kassette/backend/graph.h>

#include <atomic>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <ostream>
#include <unordered_set>
#include <vector>

#include "autograd/tape/deferred.h"
#include "autograd/function/compiled_function.h"
#include "autograd/tape/shadow.h"
#include "autograd/program/update.h"
#include "autograd/function/gradients.h"
#include "core/convert.h"
#include "core/log.h"
#include "core/sparse.h"
#include "core/text.h"
#include "nn_backend/configuration/settings.h"
#include "nn_backend/function_plan.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/engine/dispatch.h"
#include "ops/engine/error_attribution.h"
#include "ops/engine/operand.h"
#include "ops/engine/stop.h"

namespace kassette {
using namespace ops;
using namespace autograd;

struct FunctionAccess {
  static Function make(Ref<CompiledFunction> body) {
    Function f;
    f.body_ = body.release();
    return f;
  }
  static const CompiledFunction* body(const Function& f) { return f.body_; }
};

const CompiledFunction* backend::detail::compiled(const Function& f) { return FunctionAccess::body(f); }

// ---- functions of and for external backends -------------------------------------------------------------------------

namespace {

/// One of our Functions as external::Code: it takes the list of feeds and returns the list of outputs.
external::Value run_function(void* state, const external::Value* args, int n_args) {
  if (n_args != 1) fail<ValueError>({"external"}, "a function takes one list of feeds, not ", n_args, " arguments");
  return box((*static_cast<const Function*>(state))(args[0].as_tensors()));
}
void release_function(void* state) { delete static_cast<Function*>(state); }

}  // namespace

external::Value box(const Function& f) {
  const CompiledFunction* body = FunctionAccess::body(f);
  if (body && !body->code().is_none()) return body->code();
  return external::Code{run_function, release_function, new Function(f)};
}
template <>
struct ops::Unbox<Function> {
  static Function from(const external::Value& v) {
    const external::Code* code = ExternalBackendAccess::code(v);
    if (!code) ExternalBackendAccess::fail_kind(v, "code");
    if (code->run == run_function) return *static_cast<const Function*>(code->state);
    return FunctionAccess::make(Ref<CompiledFunction>::adopt(new CompiledFunction(v)));
  }
};

Function::Function(const Function& other) noexcept : body_(Ref<CompiledFunction>(other.body_).release()) {}
Function& Function::operator=(const Function& other) noexcept {
  Ref<CompiledFunction> old = Ref<CompiledFunction>::adopt(body_);
  body_ = Ref<CompiledFunction>(other.body_).release();
  return *this;
}
Function::~Function() { Ref<CompiledFunction>::drop(body_); }

Tensors Function::operator()(const Tensors& feeds) const {
  if (!body_) fail<ValueError>({"function"}, "an empty Function (an uninitialised variable?)");
  if (!body_->code().is_none()) return unbox<Tensors>("function", call_code("function", body_->code(), {feeds}));
  external::BuiltInScope ours;
  const Plan& plan = body_->plan();
  Tensors args = plan.check_feeds(feeds);
  bool symbolic = false;
  for (const Tensor& t : args)
    symbolic = symbolic || (t.defined() && (t.symbolic() || (context().symbolic && Access::desc(t).node)));
  if (!symbolic && __builtin_expect(shadow != nullptr, 0)) return plan.pack_results(shadow->call(body_->flat(), args));
  if (!symbolic) return plan.pack_results(body_->flat().run(args));
  if (plan.has_effects())
    fail<ValueError>({"function"}, "a symbolic argument connects the function to the tape, but it has updates", kRemedy,
                     "feed values");
  return plan.pack_results(body_->call(args));
}

namespace {

/// Input i of a function, given as a number, a list or a container.
Tensor fed_numbers(const Operand& feed, DType dtype, int i) {
  char name[24] = "input ";
  *std::to_chars(name + 6, name + sizeof name - 1, i).ptr = '\0';
  return as_tensor(feed, dtype, {"function", name}, Fractions::truncate);
}

}  // namespace

Tensors Function::operator()(std::initializer_list<Operand> feeds) const {
  if (!body_) fail<ValueError>({"function"}, "an empty Function (an uninitialised variable?)");
  Tensors args;
  args.reserve(static_cast<std::int64_t>(feeds.size()));
  int i = 0;
  for (const Operand& feed : feeds) {
    if (feed.is_none()) args.push_back(Tensor());
    else if (is_tensor_operand(feed)) args.push_back(tensor_of(feed));
    else
      args.push_back(fed_numbers(feed, i < body_->plan().n_inputs() ? body_->plan().input_spec(i).dtype : DType(), i));
    ++i;
  }
  return (*this)(args);
}

std::ostream& operator<<(std::ostream& os, const Function& f) {
  if (!f.body_) return os << "Function()";
  if (!f.body_->code().is_none()) return os << "Function(of an external backend)";
  const auto inputs = f.body_->plan().n_inputs(), outputs = f.body_->plan().n_results();
  return os << text("Function(", inputs, inputs == 1 ? " input, " : " inputs, ", outputs,
                    outputs == 1 ? " output)" : " outputs)");
}

bool depends_on(const Tensor& y, const Tensor& x) {
  if (!y.defined()) fail_empty({"depends_on", "y"});
  if (!x.defined()) fail_empty({"depends_on", "x"});
  const TensorDesc& from = Access::desc(x);
  if (y.id() == x.id()) return true;
  if ((from.flags & kPhase) && (!from.node || (from.flags & kLeaf))) return Access::desc(y).flags & kPhase;
  if (!from.node) return false;
  std::vector<const TensorDesc*> stack;
  std::unordered_set<const Node*> seen;
  auto look = [&](const TensorDesc& b) {
    const Node* n = b.node.get();
    if (n == from.node.get() && b.out == from.out) return true;
    if (n && (n->seq >= from.node->seq || !n->op) && seen.insert(n).second) stack.push_back(&b);
    return false;
  };
  if (look(Access::desc(y))) return true;
  while (!stack.empty()) {
    const Node* n = stack.back()->node.get();
    stack.pop_back();
    for (std::uint32_t i = 0; i < n->n_in; ++i)
      if (look(n->in()[i])) return true;
    if (!is_deferred(*n)) continue;
    for (const Tensor& t : deferred(n->attrs).computed_from(*n))
      if (look(Access::desc(t))) return true;
  }
  return false;
}

namespace backend {

struct UpdateAccess {
  static const Tensor& first(const Update& u) { return u.first_; }
  static const Tensor& second(const Update& u) { return u.second_; }
  static const Update* begin(const Updates& u) { return u.data_; }
  static const Update* end(const Updates& u) { return u.data_ + u.size_; }
};

namespace {

bool is_variable(const TensorDesc& b) { return (b.flags & kLeaf) && b.node->cell->kind == Leaf::variable; }

/// Throws what an update with that pair would throw.
void check_pair(const SetPair& pair) {
  try {
    refuse_sparse({"function"}, pair.value);
    Scoped<bool> on(context().symbolic, true);
    apply1(update_op, Attrs(), {pair.variable, pair.value});
  } catch (...) {
    rethrow_attributed("function", text("update ", pair.number));
  }
}

/// The value of a pair on the device of its variable: a single number on the CPU is copied there, that of a variable at
/// each call.
Tensor move_to_variable_device(const Tensor& variable, const Tensor& value, int number) {
  Scoped<bool> on(context().symbolic, context().symbolic || (Access::desc(value).flags & kLeaf));
  Tensor there = number_on(value, variable.device());
  if (there.device() != variable.device())
    fail_item<DeviceError>("function", "update", number, kIsRefused, variable_text(cell_of(Access::desc(variable))),
                           " is on ", variable.device(), ", the value on ", there.device());
  return there;
}

void add_updates(ProgramRequest& request, const Updates& updates) {
  int i = 0;
  for (const Update* u = UpdateAccess::begin(updates); u != UpdateAccess::end(updates); ++u, ++i) {
    const Tensor &first = UpdateAccess::first(*u), &second = UpdateAccess::second(*u);
    if (!first.defined()) fail_item<ValueError>("function", "update", i, "is ", kEmptyTensor);
    const TensorDesc& b = Access::desc(first);
    if (second.defined()) {
      if (!is_variable(b))
        fail_item<TypeError>("function", "update", i, "does not begin with a variable", kRemedy,
                             "make it with K::variable");
      request.set_pairs.push_back({first, move_to_variable_device(first, second, i), i});
      check_pair(request.set_pairs.back());
      continue;
    }
    if (b.node && b.node->op == &update_op) {
      request.update_ops.push_back(first);
    } else if (is_variable(b)) {
      fail_item<ValueError>("function", "update", i, "already ran when it was made", kRemedy,
                            "pass {variable, new_value}, or make it ",
                            "inside K::symbolic or from something that depends on a placeholder");
    } else {
      fail_item<TypeError>("function", "update", i, "of shape ", b.shape(), " is not an update op", kRemedy,
                           "pass {variable, new_value}");
    }
  }
}

/// The value that feed_dict has for a tensor, checked like any feed against the tensor's declaration. A variable stays
/// a variable: it is read at each call.
Tensor feed_value(const Tensor& key, const Tensor& value) {
  if (!key.defined() || !value.defined())
    fail<ValueError>({"function", "feed_dict"}, "has a ", key.defined() ? "value" : "key", " that is ", kEmptyTensor);
  const TensorSpec &declared = Access::desc(key), &v = Access::desc(value);
  if (!v.compatible(declared))
    fail<ValueError>({"function", "feed_dict"}, "gives ", v.shape(), ", declared ", declared.shape());
  if (Access::desc(value).flags & kLeaf) {
    if (value.device() != key.device())
      fail<DeviceError>({"function", "feed_dict"}, "gives a variable on ", value.device(),
                        ", and the tensor that it stands for is on ", key.device());
    if (v.dtype == declared.dtype) return value;
    fail<TypeError>({"function", "feed_dict"}, "gives a variable of ", v.dtype, ", declared ", declared.dtype);
  }
  if (v.dtype == declared.dtype) return value.to(key.device());
  if (is_sparse(value))
    return with_values(value, value_cast(sparse_part(value, kValues), declared.dtype).to(key.device()));
  return value_cast(value, declared.dtype).to(key.device());
}

std::atomic<int> frozen_phase{-1};

}  // namespace

/// A pair as a list of two, an op as it is.
external::Value box(const Updates& updates) {
  std::vector<external::Value> items;
  for (const Update* u = UpdateAccess::begin(updates); u != UpdateAccess::end(updates); ++u) {
    external::Value first = UpdateAccess::first(*u);
    items.push_back(UpdateAccess::second(*u).defined() ? external::Value::list({first, UpdateAccess::second(*u)})
                                                       : first);
  }
  return external::Value::list(items.data(), static_cast<int>(items.size()));
}

Update::Update(const Tensor& op) : first_(op) {}
Update::Update(const Tensor& variable, const Operand& value)
    : first_(variable),
      second_(as_tensor(value, variable.defined() ? Access::desc(variable).dtype : DType(), {"function", "updates"})) {
  if (!second_.defined()) fail<ValueError>({"function", "updates"}, "hold a pair whose value is ", kEmptyTensor);
}

Updates::Updates(std::initializer_list<Update> list) : Updates() {
  for (const Update& u : list) push_back(u);
}
Updates::Updates(const Tensors& ops) : Updates() {
  for (const Tensor& t : ops) push_back(t);
}
Updates::Updates(const Updates& other) : Updates() {
  for (std::int64_t i = 0; i < other.size_; ++i) push_back(other.data_[i]);
}
Updates& Updates::operator=(Updates other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}
void Updates::push_back(const Update& update) {
  Update added(update);              // a copy, as `update` may be in this list
  if ((size_ & (size_ - 1)) == 0) {  // full: there is room for a power of two
    auto* grown = static_cast<Update*>(::operator new(sizeof(Update) * (size_ ? 2 * size_ : 1)));
    for (std::int64_t i = 0; i < size_; ++i) {
      new (grown + i) Update(std::move(data_[i]));
      data_[i].~Update();
    }
    ::operator delete(data_);
    data_ = grown;
  }
  new (data_ + size_++) Update(std::move(added));
}
Updates::~Updates() {
  for (std::int64_t i = 0; i < size_; ++i) data_[i].~Update();
  ::operator delete(data_);
}

namespace {

Function function_of(const ProgramRequest& request) {
  auto body = Ref<CompiledFunction>::adopt(new CompiledFunction(request));
  static constinit WarnOnce drawn_anew;
  for (const LeafSlot& source : body->plan().program().random_sources)
    if (source.node->cell->has_value && !drawn_anew.said())
      drawn_anew.say(
          "K::function captured a random tensor that has a value already, and draws it anew at each call; K::eval(x) is "
          "the value alone, which stays as it is");
  return FunctionAccess::make(std::move(body));
}

}  // namespace

Function function(const Tensors& inputs, const Tensors& outputs, const Updates& updates) {
  KASSETTE_DISPATCH(function, inputs, outputs, updates);
  ProgramRequest request;
  request.inputs = inputs;
  request.outputs = outputs;
  for (const Tensor& t : outputs)
    if (!t.defined()) fail<ValueError>({"function", "outputs"}, "hold ", kEmptyTensor);
  add_updates(request, updates);
  return function_of(request);
}

Function function(const Tensors& inputs, const Tensors& outputs, const FunctionOptions& options) {
  KASSETTE_ROUTE("function", backend::function(inputs, outputs, options), inputs, outputs, options.updates,
                 options.fetches, options.feed_dict);
  ProgramRequest request;
  request.inputs = inputs;
  request.outputs = outputs;
  request.fetches = options.fetches;
  for (const Tensor& t : outputs)
    if (!t.defined()) fail<ValueError>({"function", "outputs"}, "hold ", kEmptyTensor);
  for (const Tensor& t : options.fetches)
    if (!t.defined()) fail<ValueError>({"function", "fetches"}, "hold ", kEmptyTensor);
  add_updates(request, options.updates);
  for (const Update* u = UpdateAccess::begin(options.feed_dict); u != UpdateAccess::end(options.feed_dict); ++u)
    request.feed_dict.push_back(
        {UpdateAccess::first(*u), feed_value(UpdateAccess::first(*u), UpdateAccess::second(*u))});
  return function_of(request);
}

Function function(Callable<Tensors(const Tensors&)> func, const Tensors& inputs) {
  KASSETTE_DISPATCH(function, func, inputs);
  ProgramRequest request;
  for (const Tensor& like : inputs) {
    if (!like.defined()) fail_item<ValueError>("function", "input", request.inputs.size(), "is ", kEmptyTensor);
    const TensorDesc& b = Access::desc(like);
    if (is_sparse(b)) request.inputs.push_back(placeholder(b.shape(), None, b.dtype, /*sparse=*/true));
    else request.inputs.push_back(make_leaf(Leaf::placeholder, b, b.device, {}, Name()));
  }
  Context& c = context();
  Tensors updates;
  {
    Scope scope(Scope::kSymbolic);
    Scoped<Tensors*> collect(c.updates, &updates);
    request.outputs = func(request.inputs);
  }
  for (const Tensor& t : request.outputs)
    if (!t.defined()) fail<ValueError>({"function", "func"}, "returned ", kEmptyTensor);
  request.update_ops = std::move(updates);
  return function_of(request);
}

namespace {

/// Returns the gradients. That of a sparse tensor is a sparse tensor with the same indices, and has the gradient of its
/// values.
Tensors gradients_of(const Tensor& loss, const Tensors& variables, SavedValues saved) {
  refuse_sparse({"gradients", "loss"}, loss);
  bool sparse = false;
  for (const Tensor& t : variables) sparse = sparse || is_sparse(t);
  if (!sparse) return autograd::gradients(loss, variables, saved);
  Tensors dense;
  for (const Tensor& t : variables) dense.push_back(is_sparse(t) ? sparse_part(t, kValues) : t);
  Tensors g = autograd::gradients(loss, dense, saved);
  for (std::int64_t i = 0; i < g.size(); ++i)
    if (is_sparse(variables[i]) && g[i].defined()) g[i] = with_values(variables[i], g[i]);
  return g;
}

}  // namespace

Tensors gradients(const Tensor& loss, const Tensors& variables) {
  KASSETTE_DISPATCH(gradients, loss, variables);
  return gradients_of(loss, variables, SavedValues::retain);
}
Tensors gradients(Tensor&& loss, const Tensors& variables) {
  KASSETTE_DISPATCH(gradients, loss, variables);
  Tensor last = std::move(loss);
  bool alone = last.defined() && Access::impl(last)->count.load(std::memory_order_acquire) == 1;
  return gradients_of(last, variables, alone ? SavedValues::rematerialize : SavedValues::retain);
}

Tensor stop_gradient(const Tensor& variables) {
  KASSETTE_DISPATCH(stop_gradient, variables);
  if (is_sparse(variables)) return with_values(variables, ops::stop_gradient(sparse_part(variables, kValues)));
  return ops::stop_gradient(variables);
}
Tensors stop_gradient(const Tensors& variables) {
  KASSETTE_DISPATCH(stop_gradient, variables);
  Tensors out;
  out.reserve(variables.size());
  for (const Tensor& t : variables) {
    if (!t.defined()) fail_item<ValueError>("stop_gradient", "variable", out.size(), "is ", kEmptyTensor);
    out.push_back(backend::stop_gradient(t));
  }
  return out;
}

// ---- learning phase -------------------------------------------------------------------------------------------------

Tensor learning_phase() {
  KASSETTE_DISPATCH(learning_phase);
  int frozen = frozen_phase.load(std::memory_order_relaxed);
  if (const int scoped = context().scoped_phase; scoped >= 0) frozen = scoped;
  if (frozen >= 0) {
    Tensor t = scalar_tensor(Scalar(frozen), int32, "learning_phase");
    Access::desc(t).flags |= kPhase;
    return t;
  }
  // Never destroyed: functions that feed it may outlive every static object.
  static const Tensor* symbol = [] {
    Tensor zero = scalar_tensor(Scalar(0), int32, "learning_phase");
    Tensor t =
        make_leaf(Leaf::placeholder, TensorSpec(int32, {}), cpu, read_value(Access::desc(zero)), "learning_phase");
    Access::desc(t).flags |= kPhase;
    Access::desc(t).node->cell->learning_phase = true;
    return new Tensor(t);
  }();
  return *symbol;
}

void set_learning_phase(Scalar value) {
  KASSETTE_DISPATCH(set_learning_phase, value);
  if (value.is_none())
    fail<ValueError>({"set_learning_phase", "value"}, "is None", kExpected, "it must be 0 (test) or 1 (train)");
  double v;
  write_scalar(&v, float64, value, {"set_learning_phase", "value"});
  if (v != 0 && v != 1)
    fail<ValueError>({"set_learning_phase", "value"}, "is ", v, kExpected, "it must be 0 (test) or 1 (train)");
  frozen_phase.store(static_cast<int>(v), std::memory_order_relaxed);
}

void clear_session() {
  KASSETTE_DISPATCH(clear_session);
  reset_uids();
  frozen_phase.store(-1, std::memory_order_relaxed);
}

LearningPhaseScope::LearningPhaseScope(int value) : old_(context().scoped_phase) {
  if (value != 0 && value != 1)
    fail<ValueError>({"LearningPhaseScope", "value"}, "is ", value, kExpected, "it must be 0 (test) or 1 (train)");
  context().scoped_phase = value;
}
LearningPhaseScope::~LearningPhaseScope() { context().scoped_phase = old_; }

// ---- scopes ---------------------------------------------------------------------------------------------------------

NoGradient::NoGradient() : old_(context().recording) { context().recording = false; }
NoGradient::~NoGradient() { context().recording = old_; }

Scope::Scope(Kind kind) : old_(context().symbolic) { context().symbolic = kind == kSymbolic; }
Scope::~Scope() { context().symbolic = old_; }

namespace {

/// The state of a control_dependencies scope.
struct After {
  virtual ~After() = default;
};
/// The scope of an external backend: code to call at the end.
struct AfterElsewhere final : After {
  external::Value end;
  ~AfterElsewhere() override {
    if (end.is_none()) return;
    try {
      call_code("control_dependencies", end, {});
    } catch (const std::exception& e) {
      log_warning(e.what());  // a scope may end because of an exception already
    }
  }
};
/// One of our scopes for use by an external backend: code that ends it.
external::Value scope_as_code(const Tensors& updates) {
  using Scope = std::unique_ptr<ControlDependencies>;
  auto end = [](void* state, const external::Value*, int) -> external::Value {
    static_cast<Scope*>(state)->reset();
    return None;
  };
  return external::Code{end, [](void* state) { delete static_cast<Scope*>(state); },
                        new Scope(std::make_unique<ControlDependencies>(updates))};
}

struct AfterList final : AfterUpdates, After {
  Tensors updates;
  const AfterUpdates* outer;
  const TensorDesc* substitute(const TensorDesc* b) const override {
    if (b->flags & kLeaf)
      for (std::int64_t i = updates.size(); i-- > 0;) {  // the last update of a variable counts
        const TensorDesc& u = Access::desc(updates.begin()[i]);
        if (u.node->in()[0].node == b->node) return &u;
      }
    return outer ? outer->substitute(b) : b;
  }
};

}  // namespace

ControlDependencies::ControlDependencies(const Tensors& updates) : list_(nullptr), old_(context().pending_updates) {
  if (runs_externally()) {
    auto* elsewhere = new AfterElsewhere;
    std::unique_ptr<After> held(elsewhere);
    elsewhere->end = route(
        "control_dependencies", [&] { return scope_as_code(updates); }, updates);
    list_ = held.release();
    return;
  }
  Context& c = context();
  if (updates.empty()) {
    c.pending_updates = nullptr;
    return;
  }
  auto* list = new AfterList;
  list->outer = c.pending_updates;
  for (const Tensor& t : updates)
    if (t.defined() && Access::desc(t).node && Access::desc(t).node->op == &update_op) list->updates.push_back(t);
  list_ = static_cast<After*>(list);
  c.pending_updates = list;
}
ControlDependencies::~ControlDependencies() {
  context().pending_updates = static_cast<const AfterUpdates*>(old_);
  delete static_cast<After*>(list_);
}

// ---- name scopes ----------------------------------------------------------------------------------------------------

std::string detail::scoped_name(Name name) {
  const char* prefix = context().name_scope;
  return text(prefix ? prefix : "", string_of(name));
}

NameScope::NameScope(Name name) : prefix_(nullptr), old_(context().name_scope) {
  if (!name.given()) {
    context().name_scope = nullptr;
    return;
  }
  if (name.size() == 0)
    fail<ValueError>({"name_scope", "name"}, "is empty", kExpected, "it must have at least one character");
  prefix_ = strdup(text(old_ ? old_ : "", string_of(name), '/').c_str());
  if (!prefix_) throw std::bad_alloc();
  context().name_scope = prefix_;
}
NameScope::~NameScope() {
  context().name_scope = old_;
  std::free(prefix_);
}

}  // namespace backend
}  // namespace kassette
