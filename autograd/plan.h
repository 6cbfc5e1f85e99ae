// autograd/plan.h - playing: a segment of the tape as steps that run again with other inputs.
#pragma once
#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include <kassette/engine.h>

#include "autograd/hand_over.h"
#include "ops/op.h"
#include "ops/random.h"

namespace kassette {

/// An update that a plan applies when everything else is done.
struct Effect {
  enum Mode : std::int64_t { kSet, kAdd, kSubtract };
  Ref<Cell> cell;
  int slot;   // kSet: the new value; else the increment
  Mode mode;
  const char* what;   // the function that the user called
  int number = -1;    // of a pair in the list of updates
  int step = -1;      // the tail step that makes the new value and may write it into the variable itself
  int current = -1;   // the slot of the variable that this step reads; for adds, read anew under the lock
};

/// A variable and its new value, pair number `number` of a list of updates.
struct SetPair {
  Tensor variable, value;
  int number;
};

struct Frame;
class Chain;

/// Immutable once built; what a call needs is in its frame, so that threads share a plan.
class Plan {
 public:
  std::atomic<std::int32_t> count{1};
  static void destroy(Plan* p) noexcept;
  ~Plan();

  struct Request {
    Tensors inputs, outputs;
    Tensors update_ops;                                // made by update() in a symbolic scope, or lazily
    std::vector<SetPair> set_pairs;
    Tensors fetches;                                   // computed, not returned
    std::vector<std::pair<Tensor, Tensor>> feed_dict;  // tensor that is no input, and what it stands for
    const char* what = "function";                     // for messages
    bool body = false;                                 // of control flow: updates are refused, keys are given
  };
  /// `keeps_calls`: calls of large functions may stay steps until the first run, see Note [Nested functions].
  static Ref<Plan> build(const Request& request, bool keeps_calls = false);
  /// The function that an external backend made: code that is called with the list of feeds; there are no steps.
  static Ref<Plan> external(engine::Value code);
  const engine::Value& code() const { return code_; }

  /// Runs unrecorded and commits the updates. `keys`: for bodies of control flow, what the random sources yield.
  Tensors run(const Tensor* args, int n_args, const Tensors* keys = nullptr) const;
  /// The same steps through apply(): recorded on the tape, or symbolic. No updates.
  Tensors connect(const Tensor* args, int n_args, const Tensors* keys = nullptr) const;
  /// What connect() gives, perhaps as results of one deferred node.
  Tensors call(const Tensor* args, int n_args);
  /// Casts what the caller gave to what was declared and checks the shapes; of a sparse tensor come the parts.
  Tensors check_feeds(const Tensors& args) const;
  /// What the caller gets for the outputs of a run: parts of sparse tensors put together.
  Tensors pack_results(const Tensors& outputs) const;

  /// Whether the learning phase is among the inputs.
  bool feeds_learning_phase() const {
    return std::any_of(feeds_.begin(), feeds_.end(), [](const Feed& f) { return f.fallback && f.fallback->learning_phase; });
  }
  // What the caller gives and gets; a run counts the parts of a sparse tensor one by one.
  int n_inputs() const { return static_cast<int>(inputs_.size()); }
  const Spec& input_spec(int i) const { return inputs_[static_cast<std::size_t>(i)].declared; }
  int n_results() const { return static_cast<int>(results_.size()); }
  /// Of a body of control flow: its random sources, in the order of their keys.
  const std::vector<KeySource>& sources() const { return key_sources_; }
  bool has_effects() const { return !effects_.empty(); }
  /// Whether any output depends differentiably on that input.
  bool reaches(int input) const { return reaches_[static_cast<std::size_t>(input)]; }
  /// Static specs of the outputs, as recorded.
  const Spec& output_spec(int i) const { return outputs_as_recorded_[static_cast<std::size_t>(i)]; }
  /// The same with devices.
  const std::vector<Body>& output_bodies() const { return outputs_as_recorded_; }

 private:
  friend class PlanBuilder;
  friend struct Frame;
  friend class LoopProgram;
  friend class LoopChains;
  friend class LoopRun;
  struct Step {
    const OpDef* op;
    Attrs attrs;
    std::int32_t function;   // in whose name it fails: Note [Names]
    int in, n_in;       // into ins_
    int out, n_out;     // slots
    int dead, n_dead;     // into dead_: what no later step reads
    int spent, n_spent;   // into dead_: of what no later step reads the value
    std::uint8_t need;  // 0 nothing, 1 shape, 2 value
    bool fusible, tail, source;
    bool one;           // elementwise, all inputs of one element as recorded
    bool thin;          // its result may stay one number, see Note [Thin results]
    // Of call steps, see Note [Hand-over]: the tape that the step leaves, the one it rewinds, both -1 for none.
    bool last_taker = false, consumes = false;
    int own_tape = -1, of_tape = -1;
    int taker = -1;     // the one step that rewinds own_tape, if it is one and leaves no tape itself
  };
  struct Feed {
    int slot;
    Spec declared;
    Device device;        // where the placeholder is; what is fed comes there
    Ref<Cell> fallback;   // of an input with a default
    bool ignored;         // a frozen learning phase
    std::string name;
  };
  /// An input or output as the caller sees it: one slot or, sparse, those of its three parts.
  struct Port {
    Spec declared;
    bool sparse;
  };
  /// Steps [begin, end) that run together: one, or elementwise ones over the same n elements, and perhaps the sum of the last.
  struct Item {
    int begin, end;
    std::int64_t n;
    bool fused;   // several, or one that reads thin results
    bool sums;    // the last step sums what the chain before it makes, see Note [Sums of chains]
    int chain_end() const { return end - sums; }
  };
  struct Leaf_ {
    int slot;
    Ref<Node> node;
  };

  Tensor check_feed(const Feed& feed, const Tensor& arg, int i) const;
  void add_sparse_feed(const Port& port, const Feed* feeds, const Tensor& arg, int i, Tensors& checked) const;
  void run_steps(Frame& f, int begin, int end) const;
  void log_failure(int k) const;
  [[noreturn]] void fail_step(int k) const;
  void run_step(Frame& f, const Step& s) const;
  Item gather(Frame& f, int begin, int end) const;
  void allocate(Frame& f, const Item& item) const;
  void run_item(Frame& f, const Item& item) const;
  int run_onto_row(Frame& f, int k, int end) const;
  bool sums(const Step& s) const;
  bool sums_chain(Frame& f, const Item& item) const;
  void run_fused(Frame& f, const Item& item) const;
  void fetch_operands(Chain& chain, const Frame& f, const Item& item) const;
  void add_steps(Chain& chain, const Frame& f, const Item& item) const;
  void run_summed(Frame& f, const Item& item) const;
  void bury(Frame& f, const Step& s) const;
  bool spread_thin(Frame& f, const Step& s) const;
  void thicken(Frame& f, const Step& s) const;
  bool reads_thin(const Frame& f, const Step& s) const;
  /// Whether a step from `end` on, or a caller, reads the value of a slot.
  bool stays(int slot, int end) const {
    return root_[static_cast<std::size_t>(slot)] || last_value_use_[static_cast<std::size_t>(slot)] >= end;
  }
  const Step& step(int k) const { return steps_[static_cast<std::size_t>(k)]; }
  int input(const Step& s, int i) const { return ins_[static_cast<std::size_t>(s.in + i)]; }
  bool may_defer(const Tensor* args, int n_args) const;
  const Plan& flat() const;
  HandOver hand_over(std::vector<Tape>& tapes, const Step& s) const;
  void prepare(Frame& f, const Step& s) const;
  void commit(Frame& f) const;
  void check_increments() const;
  Tensor take(Frame& f, int slot) const;
  void fill(Frame& f, const Tensor* args, int n_args) const;

  std::vector<Step> steps_;
  std::vector<int> ins_, dead_;
  int n_slots_ = 0, first_tail_ = 0;
  std::vector<std::pair<int, Body>> constants_;
  std::vector<Leaf_> variables_, sources_, defaults_;
  std::vector<KeySource> key_sources_;
  std::vector<Feed> feeds_;
  std::vector<Port> inputs_, results_;
  std::vector<int> outputs_, fetches_;
  std::vector<Body> outputs_as_recorded_;
  std::vector<Effect> effects_;
  std::vector<int> last_use_;       // per slot: the last step that reads it, or -1
  std::vector<int> last_value_use_; // the same, of steps that read more than its shape
  std::vector<char> root_;          // per slot: an output, a fetch or an effect
  std::vector<char> reaches_;
  std::vector<std::vector<char>> tapes_;   // per tape that is handed over: which inputs its takers want
  const char* what_ = "function";   // whose plan it is
  std::string missing_;             // the error of a placeholder that is needed and not fed
  std::vector<Ref<Node>> keep_;     // nodes whose attributes steps borrow nothing from, but whose cells they use
  engine::Value code_;
  // See Note [Nested functions].
  struct Nested {
    std::mutex mutex;
    Request request;   // until the first call
    Ref<Plan> flat;
  };
  std::unique_ptr<Nested> nested_;         // where a step is a deferred call
  bool deferrable_ = false;
  std::vector<std::uint64_t> depends_;     // per output: which of the first 64 inputs it is computed from
  Plan* next_dying_ = nullptr;
  mutable std::atomic<Frame*> spare_{nullptr};
};

}  // namespace kassette
