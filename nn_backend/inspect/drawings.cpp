// nn_backend/inspect/drawings.cpp - show_tape() and show_program(): what is drawn of the tape and of programs.
#include <algorithm>
#include <ostream>
#include <unordered_map>
#include <unordered_set>

#include <kassette/inspect.h>

#include "autograd/tape/deferred.h"
#include "core/io/file.h"
#include "core/print/array_text.h"
#include "core/text.h"
#include "nn_backend/function_plan.h"
#include "nn_backend/inspect/diagram.h"

namespace kassette {
using namespace inspect;
using namespace autograd;

struct DrawingAccess {
  static Drawing make(const Diagram& diagram) {
    Drawing d;
    d.text_ = Text(text_of(diagram));
    d.svg_ = Text(svg_of(diagram));
    return d;
  }
};

namespace {

constexpr int kMost = 200;  // boxes: more than that nobody can read

std::string detail_of(const TensorSpec& spec) { return text(spec, ' ', spec.dtype); }

/// A number on the CPU, as it would be typed; empty for anything else.
std::string number_in(const TensorDesc& d) {
  if (!d.storage || !d.known() || d.rank != 0 || d.device != cpu || d.symbolic()) return "";
  return dense_text(d, PrintOptions());
}

Box leaf_box(const Cell& cell) {
  static constexpr const char* kNames[] = {"variable", "placeholder", "random"};
  static constexpr Box::Kind kKinds[] = {Box::variable, Box::placeholder, Box::constant};
  const int kind = static_cast<int>(cell.kind);
  const bool named = cell.name && *cell.name;
  return {kKinds[kind], named ? cell.name : kNames[kind], cell.kind == Leaf::random_source ? "" : detail_of(cell.spec)};
}

/// Collects the nodes that a tensor depends on, each behind its inputs, and makes boxes of them.
class TapeDiagram {
 public:
  explicit TapeDiagram(const TensorDesc& result) {
    collect(result);
    if (cut_) boxes_.boxes.push_back({Box::more, "what came before", ""});
    for (const TensorDesc& d : order_) add_box(d);
    if (!order_.empty()) boxes_.boxes[index_.at(order_.back().node.get())].result = true;
  }
  Diagram diagram() { return std::move(boxes_); }

 private:
  /// Of a deferred op, whose own ops are recorded only when they are asked for, the output of these.
  TensorDesc recorded(const TensorDesc& d) {
    TensorDesc now = d;
    while (now.node && is_deferred(*now.node)) {
      auto at = expanded_.find(now.node.get());
      if (at == expanded_.end()) at = expanded_.emplace(now.node.get(), expand(*now.node)).first;
      const Tensor& t = at->second[now.out];
      if (!t.defined()) break;
      now = Access::desc(t);
    }
    return now;
  }

  void collect(const TensorDesc& result) {
    struct Visit {
      TensorDesc d;
      std::uint32_t next = 0;  // input to look at
    };
    std::vector<Visit> stack;
    auto visit = [&](const TensorDesc& d) {
      if (!d.node || !seen_.insert(d.node.get()).second) return;
      stack.push_back({d});
    };
    for (visit(recorded(result)); !stack.empty();) {
      Visit& at = stack.back();
      if (at.next < at.d.node->n_in && seen_.size() < kMost) {
        const TensorDesc in = recorded(at.d.node->in()[at.next++]);
        visit(in);
        continue;
      }
      cut_ = cut_ || at.next < at.d.node->n_in;
      order_.push_back(std::move(at.d));
      stack.pop_back();
    }
  }

  void add_box(const TensorDesc& d) {
    const Node& node = *d.node;
    auto& boxes = boxes_.boxes;
    if (node.cell) {
      index_[&node] = static_cast<int>(boxes.size());
      boxes.push_back(leaf_box(*node.cell));
      return;
    }
    std::string title = node.op ? node.op->name : "sparse", numbers;
    std::vector<int> from;
    for (std::uint32_t i = 0; i < node.n_in; ++i) {
      const TensorDesc in = recorded(node.in()[i]);
      if (in.node) {
        const auto at = index_.find(in.node.get());
        from.push_back(at == index_.end() ? 0 : at->second);
      } else if (const std::string n = number_in(in); !n.empty()) {
        numbers += (numbers.empty() ? " " : ", ") + n;
      } else {
        from.push_back(static_cast<int>(boxes.size()));
        boxes.push_back({Box::constant, "constant", detail_of(in)});
      }
    }
    const int self = index_[&node] = static_cast<int>(boxes.size());
    boxes.push_back({Box::op, title + numbers, detail_of(d)});
    for (int f : from) boxes_.arrows.push_back({f, self});
  }

  Diagram boxes_;
  std::vector<TensorDesc> order_;
  std::unordered_set<const Node*> seen_;
  std::unordered_map<const Node*, int> index_;
  std::unordered_map<const Node*, Tensors> expanded_;
  bool cut_ = false;
};

/// The boxes of a program: its slots.
Diagram diagram_of(const Program& program) {
  Diagram d;
  std::vector<int> box(static_cast<std::size_t>(program.n_slots), -1);
  std::vector<std::string> number(static_cast<std::size_t>(program.n_slots));
  auto add = [&](int slot, Box b) {
    box[slot] = static_cast<int>(d.boxes.size());
    d.boxes.push_back(std::move(b));
  };
  for (const Feed& feed : program.feeds)
    add(feed.slot, {Box::placeholder, feed.name.empty() ? "input" : feed.name, detail_of(feed.declared)});
  program.for_each_cell([&](int slot, const Cell& cell) {
    if (box[slot] < 0) add(slot, leaf_box(cell));
  });
  for (const auto& [slot, desc] : program.constants) {
    number[slot] = number_in(desc);
    if (number[slot].empty() && box[slot] < 0) add(slot, {Box::constant, "constant", detail_of(desc)});
  }
  const int most = std::min(program.n_instructions(), kMost);
  for (int k = 0; k < most; ++k) {
    const Instruction& s = program.instruction(k);
    std::string numbers;
    const int self = static_cast<int>(d.boxes.size());
    for (int slot : program.reads(s)) {
      if (slot < 0) continue;
      if (box[slot] >= 0) d.arrows.push_back({box[slot], self});
      else if (!number[slot].empty()) numbers += (numbers.empty() ? " " : ", ") + number[slot];
    }
    d.boxes.push_back({Box::op, s.op->name + numbers, ""});
    for (int i = 0; i < s.n_out; ++i) box[s.out + i] = self;
  }
  for (std::size_t i = 0; i < program.outputs.size(); ++i)
    if (const int slot = program.outputs[i]; slot >= 0 && box[slot] >= 0) {
      Box& b = d.boxes[box[slot]];
      b.result = true;
      if (b.detail.empty() && i < program.outputs_as_recorded.size())
        b.detail = detail_of(program.outputs_as_recorded[i]);
    }
  for (const Effect& e : program.effects)
    if (e.slot >= 0 && box[e.slot] >= 0) {
      Box& b = d.boxes[box[e.slot]];
      b.result = true;
      b.detail = std::string(e.mode == Effect::kSet   ? "new value of "
                             : e.mode == Effect::kAdd ? "added to "
                                                      : "subtracted from ") +
                 leaf_box(*e.cell).title;
    }
  if (most < program.n_instructions())
    d.boxes.push_back({Box::more, text(program.n_instructions() - most, " more"), ""});
  return d;
}

}  // namespace

void Drawing::save(Name path) const {
  if (svg_.empty()) fail<ValueError>({"Drawing"}, "an empty drawing");
  io::OutputFile file("Drawing", path);
  file.write(svg_.c_str(), static_cast<std::int64_t>(svg_.size()));
  file.commit();
}
std::ostream& operator<<(std::ostream& os, const Drawing& drawing) { return os << drawing.text(); }

Drawing show_tape(const Tensor& x) {
  if (!x.defined()) fail_empty({"show_tape", "x"});
  return DrawingAccess::make(TapeDiagram(Access::desc(x)).diagram());
}

Drawing show_program(const Function& f) {
  const CompiledFunction* compiled = backend::detail::compiled(f);
  if (!compiled) fail<ValueError>({"show_program"}, "an empty Function (an uninitialised variable?)");
  if (!compiled->code().is_none()) fail<ValueError>({"show_program", "f"}, "is a function of an external backend");
  return DrawingAccess::make(diagram_of(compiled->plan().program()));
}

}  // namespace kassette
