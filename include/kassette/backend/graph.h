// include/kassette/backend/graph.h - gradients, functions and the scopes of the tape.
#ifndef KASSETTE_BACKEND_GRAPH_H
#define KASSETTE_BACKEND_GRAPH_H
#include <kassette/api.h>

namespace kassette {

namespace autograd {
class CompiledFunction;
}

/// A segment of the tape that can be replayed: what K::function returns. Copies share it; threads may call it
/// concurrently.
class KASSETTE_API Function {
 public:
  Function() noexcept : body_(nullptr) {}
  Function(const Function& other) noexcept;
  Function& operator=(const Function& other) noexcept;
  ~Function();
  bool defined() const { return body_ != nullptr; }
  /// Feeds the inputs in order, computes the outputs from the values that the variables have at entry, then applies the
  /// updates. Values are cast to the dtype of their placeholder. Throws ValueError if a shape does not fit or a feed is
  /// missing; no variable has changed then. A symbolic argument connects the segment to the tape instead.
  Tensors operator()(const Tensors& feeds) const;
  /// Numbers and lists take the dtype of their placeholder: f({x, 0.7}).
  Tensors operator()(std::initializer_list<Operand> feeds = {}) const;
  friend KASSETTE_API std::ostream& operator<<(std::ostream& os, const Function& f);

 private:
  autograd::CompiledFunction* body_;
  friend struct FunctionAccess;
};

/// Whether y depends on x: whether the ops recorded for y, including those in bodies of loops and functions, read x
/// (or, if x is a placeholder or variable, its value at a call). True if they are the same tensor. Gradients may still
/// be None between the two.
KASSETTE_API bool depends_on(const Tensor& y, const Tensor& x);

namespace backend {

/// One update: an update op, or a variable and its new value.
class KASSETTE_API Update {
 public:
  Update(const Tensor& op);
  Update(const Tensor& variable, const Operand& value);

 private:
  Tensor first_, second_;
  friend struct UpdateAccess;
};
/// The updates of a function, listed or put together one by one: `updates.push_back({w, w - step})`.
class KASSETTE_API Updates {
 public:
  Updates() noexcept : data_(nullptr), size_(0) {}
  Updates(std::initializer_list<Update> list);
  Updates(const Tensors& ops);
  Updates(const Updates& other);
  Updates& operator=(Updates other) noexcept;
  ~Updates();
  void push_back(const Update& update);

 private:
  Update* data_;
  std::int64_t size_;
  friend struct UpdateAccess;
};
/// The rarer arguments of `function`.
struct FunctionOptions {
  Named only_by_name{0};
  Updates updates = {};
  /// Further tensors to compute at each call; not returned. Updates among them are applied.
  Tensors fetches = {};
  /// Pairs of a tensor that is not an input and the value that replaces it at every call; the values are read at each
  /// call.
  Updates feed_dict = {};
};

/// A function of placeholders (or of any tensors on the tape): inputs -> outputs, with updates applied after the
/// outputs are computed. Throws ValueError for an input that is not on the tape and for an update that already ran.
KASSETTE_API Function function(const Tensors& inputs, const Tensors& outputs, const Updates& updates = {});
KASSETTE_API Function function(const Tensors& inputs, const Tensors& outputs, const FunctionOptions& options);
/// The same from a callable (tensors -> tensors), which runs once, now, on new placeholders that are like `inputs`:
/// these are placeholders, whose unknown sizes stay unknown, or example tensors. Operations on tensors on the tape are
/// only recorded: variables and other tensors that it captures are read, updates happen and random numbers are drawn at
/// each call of the function.
KASSETTE_API Function function(Callable<Tensors(const Tensors&)> func, const Tensors& inputs);

/// d(sum of loss)/dv for each of the variables, which may be variables, placeholders or any tensors on the tape; an
/// empty Tensor if the loss does not depend on v. Gradients are tensors on the tape themselves, and can be
/// differentiated to any order. Throws ValueError if v was never recorded (a constant).
KASSETTE_API Tensors gradients(const Tensor& loss, const Tensors& variables);
/// The same for a loss that is no longer needed, a temporary or std::move(loss): memory that no other tensor holds is
/// freed during the pass; if a gradient is differentiated later, the values are recomputed.
KASSETTE_API Tensors gradients(Tensor&& loss, const Tensors& variables);

/// The same value, through which no gradient flows.
KASSETTE_API Tensor stop_gradient(const Tensor& variables);
KASSETTE_API Tensors stop_gradient(const Tensors& variables);

/// While it lives, what this thread computes has no history: ops only compute values and keep nothing for a backward
/// pass, and no gradient flows to their inputs. For evaluation and long simulations. Variables may be made and updated;
/// placeholders, and tensors computed from them, stay on the tape; use stop_gradient for those.
class KASSETTE_API NoGradient {
 public:
  NoGradient();
  ~NoGradient();
  NoGradient(const NoGradient&) = delete;
  NoGradient& operator=(const NoGradient&) = delete;

 private:
  bool old_;
};
/// `auto scope = K::no_gradient();`
[[nodiscard]] inline NoGradient no_gradient() { return NoGradient(); }

/// 0 (test) or 1 (train): a symbol with default 0 that may be listed among a function's inputs, or, if it is frozen by
/// set_learning_phase or a LearningPhaseScope, a constant. int32, shape ().
KASSETTE_API Tensor learning_phase();
/// Freezes the learning phase; throws ValueError unless value is 0 or 1. clear_session thaws it.
KASSETTE_API void set_learning_phase(Scalar value);
/// Forgets uids and the frozen learning phase. Tensors and variables are unchanged, and can still be read.
KASSETTE_API void clear_session();
/// Freezes the learning phase on this thread while it lives.
class KASSETTE_API LearningPhaseScope {
 public:
  explicit LearningPhaseScope(int value);
  ~LearningPhaseScope();
  LearningPhaseScope(const LearningPhaseScope&) = delete;
  LearningPhaseScope& operator=(const LearningPhaseScope&) = delete;

 private:
  int old_;
};

/// While it lives, what this thread does to tensors on the tape is only recorded (symbolic), or is done at once
/// (eager).
class KASSETTE_API Scope {
 public:
  enum Kind : unsigned char { kEager, kSymbolic };
  explicit Scope(Kind kind);
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  bool old_;
};
/// A callable that runs inside a scope; made by `symbolic` and `eager`.
template <class F, Scope::Kind kind>
class InScope {
 public:
  explicit InScope(F f) : f_(static_cast<F&&>(f)) {}
  template <class... A>
  decltype(auto) operator()(A&&... a) const {
    Scope scope(kind);
    return f_(static_cast<A&&>(a)...);
  }
  /// For a callable that changes itself.
  template <class... A>
  decltype(auto) operator()(A&&... a) {
    Scope scope(kind);
    return f_(static_cast<A&&>(a)...);
  }

 private:
  F f_;
};
/// A callable that runs func so that updates, prints and random draws on tensors of the tape are recorded, and happen
/// in eval or in a function.
template <class F>
InScope<F, Scope::kSymbolic> symbolic(F func) {
  return InScope<F, Scope::kSymbolic>(static_cast<F&&>(func));
}
/// A callable that runs func so that everything happens at once, which is the default.
template <class F>
InScope<F, Scope::kEager> eager(F func) {
  return InScope<F, Scope::kEager>(static_cast<F&&>(func));
}

/// While it lives, reads of the variables that `updates` change stand for the values after those updates. Updates that
/// already ran are ignored: the variable has its new value. An empty list disables outer scopes.
class KASSETTE_API ControlDependencies {
 public:
  explicit ControlDependencies(const Tensors& updates);
  // Without this overload, ControlDependencies({add}) could mean a copy of another one.
  explicit ControlDependencies(std::initializer_list<Tensor> updates) : ControlDependencies(Tensors(updates)) {}
  ~ControlDependencies();
  ControlDependencies(const ControlDependencies&) = delete;
  ControlDependencies& operator=(const ControlDependencies&) = delete;

 private:
  void* list_;
  const void* old_;
};
/// `auto after = K::control_dependencies(updates);`
[[nodiscard]] inline ControlDependencies control_dependencies(const Tensors& updates) {
  return ControlDependencies(updates);
}

/// While it lives, names of variables and placeholders made on this thread begin with the name of the scope and a
/// slash, after the names of outer scopes; with None they begin anew, without those. Names do not affect results.
class KASSETTE_API NameScope {
 public:
  explicit NameScope(Name name);
  ~NameScope();
  NameScope(const NameScope&) = delete;
  NameScope& operator=(const NameScope&) = delete;

 private:
  char* prefix_;
  const char* old_;
};
/// `auto scope = K::name_scope("encoder");`
[[nodiscard]] inline NameScope name_scope(Name name) { return NameScope(name); }

}  // namespace backend
}  // namespace kassette

#endif  // KASSETTE_BACKEND_GRAPH_H
