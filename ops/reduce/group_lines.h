// ops/reduce/group_lines.h - what has a number for each group of a reduction, along the lines of memory that groups
// consist of.
#pragma once
#include "ops/reduce/reduce_runs.h"
#include "ops/shape/repeat.h"

namespace kassette::ops {

/// A shape as (outer, n, inner), with the last marked run in the middle. `rest` are the other runs.
struct GroupLines {
  std::int64_t outer = 1, n = 1, inner = 1;
  CoalescedAxes rest;
  explicit GroupLines(const CoalescedAxes& runs) {
    int last = runs.n - 1;
    while (last >= 0 && !runs.marked[last]) --last;
    for (int i = 0; i < runs.n; ++i)
      if (i != last) rest.push(runs.size[i], runs.marked[i]);
    outer = runs.product(0, last < 0 ? runs.n : last);
    if (last < 0) return;
    n = runs.size[last];
    inner = runs.product(last + 1, runs.n);
  }
  /// Calls rows(first element, m, o) on m elements of the row o if inner is 1, else columns(first element, m, o) on m
  /// rows of `inner` elements, whose columns are numbered from o on. On several threads.
  template <class Rows, class Columns>
  void run(std::int64_t grain, Rows rows, Columns columns) const {
    devices::parallel_for(outer * n, std::max<std::int64_t>(1, grain / inner),
                          [&](std::int64_t begin, std::int64_t end) {
                            for (std::int64_t m; begin < end; begin += m) {
                              const std::int64_t o = begin / n;
                              m = std::min(end, (o + 1) * n) - begin;
                              if (inner == 1) rows(begin, m, o);
                              else columns(begin * inner, m, o * inner);
                            }
                          });
  }
};

/// A number for each group, repeated for each row or column of GroupLines.
template <class T>
class PerLine {
 public:
  PerLine(const T* of_group, const GroupLines& lines)
      : at_(of_group), held_(lines.rest.marked_product() > 1 ? lines.outer * lines.inner : 0) {
    if (lines.rest.marked_product() == 1) return;
    repeat_runs(reinterpret_cast<const std::byte*>(of_group), reinterpret_cast<std::byte*>(held_.get()), sizeof(T),
                lines.rest);
    at_ = held_.get();
  }
  const T* get() const { return at_; }

 private:
  const T* at_;
  Scratch<T> held_;
};

}  // namespace kassette::ops
