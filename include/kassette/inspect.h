// include/kassette/inspect.h - looking at numbers from a prompt or a script. Opt-in: <kassette/inspect.h>.
//
// Each call returns a value that prints: describe(x) at a prompt shows itself, std::cout << describe(x) in a script.
// Colours appear on a terminal that has them, unless NO_COLOR is set.
#ifndef KASSETTE_INSPECT_H
#define KASSETTE_INSPECT_H
#include <cstdint>
#include <iosfwd>
#include <type_traits>
#include <utility>

#include <kassette/api.h>
#include <kassette/none.h>
#include <kassette/print.h>
#include <kassette/runtime.h>

namespace kassette {

/// A description of a tensor. The statistics are those of its finite elements, in float64; std divides by their number,
/// as in NumPy.
struct Description {
  Shape shape;
  DType dtype;
  Device device;
  const char* without = nullptr;  // why there are no elements to look at ("symbolic"), else null
  bool sparse = false;            // `size` and what follows are those of the entries
  std::int64_t size = 0, bytes = 0;
  std::int64_t nan = 0, inf = 0, zeros = 0;
  double min = 0, max = 0, mean = 0, std = 0;
  std::int64_t int_min = 0, int_max = 0;  // min and max of integers, exactly; of uint64 as their bits
  static constexpr int kBins = 40;
  std::int64_t bins[kBins] = {};  // how many lie in each of so many equal parts of [min, max]
  friend KASSETTE_API std::ostream& operator<<(std::ostream& os, const Description& d);
};
/// Describes x, in two passes over its elements; for a sparse tensor, over its entries.
KASSETTE_API Description describe(const Operand& x);

/// How a picture is drawn as text; automatic: as the terminal allows.
enum class Style : std::uint8_t { automatic, ascii, unicode, color };
/// How a picture is drawn.
struct PictureOptions {
  Named only_by_name{0};
  Name title = None;
  int width = 0, height = 0;       // of the text, in characters; 0: as fits the terminal
  Style style = Style::automatic;  // ascii: printable ASCII alone; unicode: without colours
  int bins = 0;                    // of hist; 0: 40
};

/// A picture of numbers, which prints as text and can be saved as PNG. An object whose bytes are all 0 is the empty
/// picture.
class KASSETTE_API Picture {
 public:
  enum Kind : std::uint8_t { kNone, kPlot, kHist, kImage };
  Picture() noexcept : kind_(kNone), style_(Style::automatic), width_(0), height_(0), bins_(0) {}
  Text text() const;
  /// (height, width, 3), uint8. Images have one pixel for each element, plots and histograms are 640 x 400.
  Tensor pixels() const;
  /// Writes the picture to a file, as save_png does.
  void save(Name path) const;
  friend KASSETTE_API std::ostream& operator<<(std::ostream& os, const Picture& picture);

 private:
  Picture(Kind kind, Tensor x, Tensor y, const PictureOptions& options);
  Kind kind_;
  Style style_;
  int width_, height_, bins_;
  Text title_;
  Tensor x_, y_;
  friend struct PictureAccess;
};

/// The elements of y, (n,), as a line over their indices; for (n, k), k lines. Elements that are not finite are left
/// out.
KASSETTE_API Picture plot(const Operand& y, const PictureOptions& options = {});
/// The same over x, (n,).
KASSETTE_API Picture plot_over(const Operand& x, const Operand& y, const PictureOptions& options = {});
/// A template, so that braces with names in them are options first: `plot({1, 2}, {.width = 40})`.
template <class = void>
Picture plot(const Operand& x, const Operand& y, const PictureOptions& options = {}) {
  return plot_over(x, y, options);
}
/// A histogram: how many elements lie in each of several equal parts of their range.
KASSETTE_API Picture hist(const Operand& x, const PictureOptions& options = {});
/// An image: (h, w) in shades from the smallest to the largest element, (h, w, 3 or 4) in colours, as uint8 or as
/// floats from 0 to 1.
KASSETTE_API Picture imshow(const Operand& image, const PictureOptions& options = {});

class Function;

/// Boxes and arrows: what show_tape() and show_program() return. It prints as a line for each box, and is an SVG in a
/// notebook and in files.
class KASSETTE_API Drawing {
 public:
  Text text() const { return text_; }
  Text svg() const { return svg_; }
  /// Writes the SVG to a file.
  void save(Name path) const;
  friend KASSETTE_API std::ostream& operator<<(std::ostream& os, const Drawing& drawing);

 private:
  Text text_, svg_;
  friend struct DrawingAccess;
};
/// The ops that x was computed by, back to variables, placeholders and constants, as the tape has them, 200 at most.
/// Empty for a tensor without history.
KASSETTE_API Drawing show_tape(const Tensor& x);
/// The instructions of a function, from its inputs and variables to its outputs; 200 at most.
KASSETTE_API Drawing show_program(const Function& f);

/// How long a call takes: the median of several runs, in seconds.
struct Timing {
  double median = 0, least = 0, spread = 0;     // spread: between the quartiles
  std::int64_t runs = 0, loops = 0;             // timed runs, calls in each
  std::int64_t allocations = 0;                 // blocks of memory that a call took from the system, rounded up
  std::int64_t kept_bytes = 0, kept_nodes = 0;  // what a call left alive: more than 0 if its tape grows
  friend KASSETTE_API std::ostream& operator<<(std::ostream& os, const Timing& t);
};
/// How long and how often timeit calls.
struct TimeitOptions {
  Named only_by_name{0};
  double seconds = 0.5;  // for all runs
  int runs = 0;          // 0: as many as fit, 5 at least
  int loops = 0;         // calls in a run; 0: as many as take 5 ms
};
namespace detail {
/// The call returns the device that it left work on.
KASSETTE_API Timing timed(Callable<Device()> call, const TimeitOptions& options);
template <class F>
Device call_for_device(F& f) {
  if constexpr (std::is_convertible<decltype(f()), const Tensor&>::value) {
    const Tensor& x = f();
    return x.defined() ? x.device() : cpu;
  } else {
    static_cast<void>(f());
    return cpu;
  }
}
}  // namespace detail
/// Times f: calls it a few times first, then until the time is up. If f returns a tensor on a CUDA device, each run
/// waits for its work there.
template <class F>
Timing timeit(F&& f, const TimeitOptions& options = {}) {
  auto call = [&f] { return detail::call_for_device(f); };
  return detail::timed(call, options);
}

/// A line on standard error that shows the progress of a loop, if that is a terminal; a bar in a notebook.
class KASSETTE_API ProgressBar {
 public:
  /// total < 0: not known.
  explicit ProgressBar(std::int64_t total, Name label = None);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  /// Counts one more step as done.
  void step();

 private:
  struct State;
  State* state_;  // null: nobody looks
};

namespace detail {
template <class R, class = void>
struct HasSize : std::false_type {};
template <class R>
struct HasSize<R, std::void_t<decltype(std::declval<const R&>().size())>> : std::true_type {};
template <class R>
std::int64_t total_of(const R& range) {
  if constexpr (HasSize<R>::value) return static_cast<std::int64_t>(range.size());
  else return -1;
}

/// A range whose iterators advance a ProgressBar.
template <class R>
class Progress {
 public:
  Progress(R&& range, Name label) : range_(static_cast<R&&>(range)), bar_(total_of(range_), label) {}
  template <class At>
  struct Iterator {
    At at;
    ProgressBar* bar;
    decltype(auto) operator*() const { return *at; }
    Iterator& operator++() {
      ++at;
      bar->step();
      return *this;
    }
    template <class End>
    bool operator!=(const Iterator<End>& end) const {
      return at != end.at;
    }
  };
  auto begin() { return Iterator<decltype(range_.begin())>{range_.begin(), &bar_}; }
  auto end() { return Iterator<decltype(range_.end())>{range_.end(), &bar_}; }

 private:
  R range_;  // a reference where a name was given
  ProgressBar bar_;
};
/// The range of the integers from 0 to n - 1.
struct Count {
  struct Iterator {
    std::int64_t i;
    std::int64_t operator*() const { return i; }
    Iterator& operator++() {
      ++i;
      return *this;
    }
    bool operator!=(const Iterator& o) const { return i < o.i; }
  };
  std::int64_t n;
  std::int64_t size() const { return n; }
  Iterator begin() const { return {0}; }
  Iterator end() const { return {n}; }
};
}  // namespace detail
/// for (auto& batch : progress(batches)): the elements of a container, or 0 to n - 1, with a bar on the terminal.
template <class R, class = std::enable_if_t<!std::is_integral<std::decay_t<R>>::value>>
detail::Progress<R> progress(R&& range, Name label = None) {
  return {static_cast<R&&>(range), label};
}
template <class N, class = std::enable_if_t<std::is_integral<N>::value>, class = void>
detail::Progress<detail::Count> progress(N n, Name label = None) {
  return {detail::Count{static_cast<std::int64_t>(n)}, label};
}

/// The memory of the process: tensors on each device that is in use, the tape, and its share of the machine's memory.
struct MemoryReport {
  MemoryStats host = {}, device = {};
  bool has_device = false;            // cuda:0, where it has been used
  std::int64_t nodes = 0, saved = 0;  // live_nodes(), saved_bytes()
  std::int64_t resident = 0;          // bytes of the process in memory; 0: not known
  friend KASSETTE_API std::ostream& operator<<(std::ostream& os, const MemoryReport& m);
};
KASSETTE_API MemoryReport memory();

}  // namespace kassette

#endif  // KASSETTE_INSPECT_H
