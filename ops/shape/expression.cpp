// ops/shape/expression.cpp - reading the indices of x(i, j, ...), which may be text.
#include "ops/shape/expression.h"

#include <cstdlib>
#include <cstring>

#include "core/convert.h"
#include "core/rank.h"
#include "core/text.h"

namespace kassette::ops {
namespace {

using Part = IndexList::Part;

[[noreturn]] void fail_text(const char* all, const char* at) {
  fail<ValueError>({"index"}, "'", all, "' is not understood at '", at, "'", kExpected,
                   "it must be made of 1, 1:5, ::-1, ..., newaxis, with commas between");
}

class Parser {
 public:
  Parser(std::string text, IndexList& list) : whole_(std::move(text)), text_(whole_.c_str()), at_(text_), list_(list) {}
  void run() {
    check_text(Name(whole_));
    do {
      part();
      space();
    } while (accept(","));
    if (*at_) fail_text(text_, at_);
  }

 private:
  void part() {
    space();
    if (accept("...")) return list_.push({.kind = IndexList::kEllipsis});
    if (accept("newaxis") || accept("None")) return list_.push({.kind = IndexList::kNewAxis});
    Part p;
    p.has_start = number(p.start);
    if (!accept(":")) {
      if (!p.has_start) fail_text(text_, at_);
      p.kind = IndexList::kInt;
      p.has_start = false;
      return list_.push(p);
    }
    p.has_stop = number(p.stop);
    if (accept(":") && number(p.step) && p.step == 0)
      fail<ValueError>({"index"}, "'", text_, "': the step is 0", kExpected, "it must be another number");
    list_.push(p);
  }
  bool number(std::int64_t& value) {
    space();
    const char* digits = at_ + (*at_ == '-' || *at_ == '+');
    if (*digits < '0' || *digits > '9') return false;
    char* end;
    value = std::strtoll(at_, &end, 10);
    at_ = end;
    space();
    return true;
  }
  bool accept(const char* word) {
    std::size_t n = std::strlen(word);
    if (std::strncmp(at_, word, n)) return false;
    at_ += n;
    return true;
  }
  void space() {
    while (*at_ == ' ') ++at_;
  }
  std::string whole_;
  const char* text_;
  const char* at_;
  IndexList& list_;
};

}  // namespace

void Expression::add_tensor(const Tensor& t) {
  if (!t.defined()) fail_empty({"index"});
  const TensorDesc& b = Access::desc(t);
  const bool mask = b.dtype == bool_;
  if (!mask && !b.dtype.is_integer())
    fail<TypeError>({"index"}, "a tensor of ", b.dtype, kExpected, "an index tensor must hold integers or bools");
  if (mask && b.rank < 0) fail_unknown_rank({"index", "mask"});
  if (n_tensors == kMaxRank) fail<ValueError>({"index"}, "more than ", kMaxRank, " tensors");
  if (mask || b.rank != 0) {
    array = n_tensors;
    ++arrays;
  }
  const int parts = mask && b.rank > 1 ? b.rank : 1;
  tensors[n_tensors++] = {t, list->n, parts};
  for (int i = 0; i < parts; ++i) list->push({.kind = mask && b.rank == 0 ? IndexList::kNewAxis : IndexList::kSlice});
}

void Expression::add(const Index& i) {
  Part p;
  switch (Access::kind(i)) {
    case Index::kAbsent: return;
    case Index::kInt:
      p.kind = IndexList::kInt;
      p.start = Access::start(i);
      break;
    case Index::kTensor: return add_tensor(*static_cast<const Tensor*>(Access::pointer(i)));
    case Index::kSlice:
      p.has_start = Access::has(i) & 1;
      p.has_stop = Access::has(i) & 2;
      p.start = Access::start(i);
      p.stop = Access::stop(i);
      p.step = Access::step(i);
      break;
    case Index::kEllipsis: p.kind = IndexList::kEllipsis; break;
    case Index::kNewAxis: p.kind = IndexList::kNewAxis; break;
    case Index::kText: return Parser(Access::text(i), *list).run();
  }
  list->push(p);
}

int Expression::tensor_of(int part) const {
  for (int k = 0; k < n_tensors; ++k)
    if (part >= tensors[k].part && part < tensors[k].part + tensors[k].parts) return k;
  return -1;
}

int Expression::ellipsis() const {
  int k = 0;
  while (k < list->n && list->parts[k].kind != IndexList::kEllipsis) ++k;
  return k;
}

int Expression::axes_taken(int begin, int end) const {
  int n = 0;
  for (int k = begin; k < end; ++k)
    n += list->parts[k].kind == IndexList::kInt || list->parts[k].kind == IndexList::kSlice;
  return n;
}

int Expression::kept_axes(int begin, int end) const {
  int n = 0;
  for (int k = begin; k < end; ++k) {
    const IndexList::Kind kind = list->parts[k].kind;
    n += (kind == IndexList::kSlice || kind == IndexList::kNewAxis) && tensor_of(k) < 0;
  }
  return n;
}

bool Expression::separated() const {
  int last = -1;
  for (int k = 0; k < list->n; ++k) {
    if (list->parts[k].kind != IndexList::kInt && tensor_of(k) < 0) continue;
    if (last >= 0 && last != k - 1) return true;
    last = k;
  }
  return false;
}

}  // namespace kassette::ops
