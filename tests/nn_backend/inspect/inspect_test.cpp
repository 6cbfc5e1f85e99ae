// tests/nn_backend/inspect/inspect_test.cpp - describe, pictures, timeit, progress and memory.
#include <kassette/inspect.h>

#include <kassette/backend.h>
#include <kassette/error.h>
#include <kassette/io.h>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <limits>
#include <sstream>
#include <thread>
#include <vector>

#include "nn_backend/inspect/progress_text.h"
#include "nn_backend/inspect/terminal.h"
#include "tests/catch.h"
#include "tests/devices/devices.h"
#include "tests/environment.h"
#include "tests/io/folder.h"
#include "tests/ops/levels.h"

using namespace kassette;
using namespace kassette::inspect;
using test::Environment;
namespace K = kassette::backend;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

template <class T>
std::string shown(const T& v) {
  std::ostringstream os;
  os << v;
  return os.str();
}

/// Standard output or error as a terminal of 40 x 12 whose text can be read.
class PseudoTerminal {
 public:
  /// Whether the machine has a terminal device: a bare chroot does not.
  static bool there_is() {
    const int master = posix_openpt(O_RDWR | O_NOCTTY);
    const bool good = master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0 && ptsname(master) &&
                      access(ptsname(master), R_OK | W_OK) == 0;
    if (master >= 0) close(master);
    return good;
  }
  explicit PseudoTerminal(int descriptor)
      : descriptor_(descriptor), was_(dup(descriptor)), master_(posix_openpt(O_RDWR | O_NOCTTY)) {
    grantpt(master_);
    unlockpt(master_);
    int slave = open(ptsname(master_), O_RDWR | O_NOCTTY);
    winsize size{12, 40, 0, 0};
    ioctl(slave, TIOCSWINSZ, &size);
    dup2(slave, descriptor);
    close(slave);
  }
  ~PseudoTerminal() {
    dup2(was_, descriptor_);
    close(was_);
    close(master_);
  }
  /// Returns all that was written. A terminal delivers it in pieces, so a marker byte is written and awaited.
  std::string text() {
    constexpr char kEnd = '\x01';
    if (write(descriptor_, &kEnd, 1) != 1) return "";
    std::string s;
    char piece[4096];
    for (ssize_t n; (s.empty() || s.back() != kEnd) && (n = read(master_, piece, sizeof piece)) > 0;)
      s.append(piece, static_cast<std::size_t>(n));
    if (!s.empty()) s.pop_back();
    return s;
  }

 private:
  int descriptor_, was_, master_;
};

const PictureOptions kAscii{.width = 30, .height = 4, .style = Style::ascii};

}  // namespace

TEST_CASE("describe says what is in a tensor", "[inspect]") {
  Tensor x = K::constant({{1, 2, 3}, {4, 0, 6}});
  Description d = describe(x);
  CHECK(d.size == 6);
  CHECK(d.bytes == 24);
  CHECK(d.zeros == 1);
  CHECK(d.min == 0);
  CHECK(d.max == 6);
  CHECK(d.mean == Approx(16 / 6.0));
  CHECK(d.std == Approx(std::sqrt(66 / 6.0 - 256 / 36.0)));
  CHECK(d.bins[0] == 1);
  CHECK(d.bins[Description::kBins - 1] == 1);
  Environment ascii("TERM", "dumb");
  CHECK(shown(d) ==
        "(2, 3) float32 cpu, 6 elements, 24 bytes\n"
        "min 0.0  max 6.0  mean 2.66667  std 1.97203\n"
        "zeros 1  NaN 0  inf 0\n"
        "0 |@     @      @      @     @            @| 6");
}

TEST_CASE("describe counts what is not finite and looks at the rest", "[inspect]") {
  Description d = describe(K::constant({1.0, NAN, 3.0, kInf, -kInf, NAN}, "float64"));
  CHECK(d.nan == 2);
  CHECK(d.inf == 2);
  CHECK(d.mean == 2);
  CHECK(d.std == 1);
  Description none = describe(K::constant({NAN, kInf}, "float16"));
  CHECK(std::isnan(none.mean));
  CHECK(shown(none) == "(2,) float16 cpu, 2 elements, 4 bytes\nzeros 0  NaN 1  inf 1");
}

TEST_CASE("describe takes the rounding of the mean out of the standard deviation", "[inspect]") {
  for (double v : {0.7, 1e8 / 3, -1e-300})
    for (std::int64_t n : {3, 10, 999}) {
      const Description d = describe(K::constant(v, "float64", {n}));
      CHECK(d.mean == v);
      CHECK(d.std == 0);
    }
  // One of four elements is a unit in the last place above the others: the mean is between two doubles.
  const double unit = std::ldexp(1, -26);
  const Description d = describe(K::constant({0x1p26, 0x1p26, 0x1p26 + unit, 0x1p26}, "float64"));
  CHECK(d.std == Approx(std::sqrt(3 / 16.0) * unit));
}

TEST_CASE("describe of scalars, empty, bool and symbolic tensors", "[inspect]") {
  CHECK(shown(describe(K::constant(5))) ==
        "() float32 cpu, 1 element, 4 bytes\nmin 5.0  max 5.0  mean 5  std 0\nzeros 0  NaN 0  inf 0");
  CHECK(shown(describe(K::zeros({0, 3}))) == "(0, 3) float32 cpu, 0 elements, 0 bytes");
  Environment ascii("TERM", "dumb");
  CHECK(
      shown(describe(K::constant({1, 0, 1, 1}, "bool"))) ==
      "(4,) bool cpu, 4 elements, 4 bytes\nmin False  max True  mean 0.75  std 0.433013\nzeros 1\n0 |-                                      @| 1");
  CHECK(shown(describe(K::placeholder({None, 3}))) == "(None, 3) float32 cpu, symbolic: no elements yet");
  CHECK(shown(describe(K::variable({1, 2}))).find("(2,) float32 cpu, 2 elements") == 0);
  CHECK_THROWS_WITH(describe(Tensor()),
                    "describe: x is an empty Tensor (a gradient that is None, or an uninitialised variable?)");
  CHECK(shown(Description()).size() > 0);
  CHECK(describe(std::vector<std::int16_t>{1, 2}).dtype == int16);
}

TEST_CASE("describe keeps the extremes of integers and of float64", "[inspect]") {
  std::vector<std::int64_t> v{INT64_MIN, INT64_MAX, 0};
  Description d = describe(v);
  CHECK(d.int_min == INT64_MIN);
  CHECK(d.int_max == INT64_MAX);
  CHECK(shown(d).find("min -9223372036854775808  max 9223372036854775807") != std::string::npos);
  const Description whole = describe(std::vector<std::uint64_t>{3, UINT64_MAX, 5});
  CHECK(static_cast<std::uint64_t>(whole.int_max) == UINT64_MAX);
  CHECK(shown(whole).find("min 3  max 18446744073709551615") != std::string::npos);
  CHECK(d.bins[0] == 1);
  CHECK(d.bins[Description::kBins / 2] == 1);
  CHECK(d.bins[Description::kBins - 1] == 1);
  double most = std::numeric_limits<double>::max();
  Description large = describe(K::constant({most, most, -most, -most}, "float64"));
  CHECK(large.mean == 0);
  CHECK(large.std == most);
  CHECK(large.bins[0] == 2);
  CHECK(large.bins[Description::kBins - 1] == 2);
  double least = std::numeric_limits<double>::denorm_min();
  CHECK(describe(K::constant({least, 0.0}, "float64")).bins[Description::kBins - 1] +
            describe(K::constant({least, 0.0}, "float64")).bins[0] ==
        2);
}

TEST_CASE("describe does not depend on the number of threads and is exact for many elements", "[inspect]") {
  Tensor x = K::arange(0, 100000, 1, "int32");
  test::SettingsScope restore;
  set_num_threads(1);
  Description one = describe(x);
  set_num_threads(4);
  Description four = describe(x);
  CHECK(one.mean == four.mean);
  CHECK(one.std == four.std);
  CHECK(one.mean == 49999.5);
  CHECK(one.std == Approx(std::sqrt((1e10 - 1) / 12)).epsilon(1e-13));
  for (std::int64_t n : one.bins) CHECK(n == 100000 / Description::kBins);
  Tensor far = K::constant(1e9, "float64") + K::cast(x, "float64");  // squares of the values themselves would cancel
  CHECK(describe(far).std == Approx(one.std).epsilon(1e-12));
}

TEST_CASE("describe is what its elements say, one after the other, at every level", "[inspect]") {
  for (DType dtype : {float32, float64, float16, int64})
    for (int n : {1, 7, 8, 9, 1025, 40003}) {
      INFO(dtype << " " << n);
      std::vector<double> v;
      for (int i = 0; i < n; ++i) {
        double x = i % 11 == 5 ? 0 : (i * 37 % 101 - 40) * 0.25;
        if (dtype == int64) x = std::floor(x);
        else if (i % 13 == 3) x = i % 2 ? NAN : i % 3 ? kInf : -kInf;
        v.push_back(x);
      }
      std::int64_t nan = 0, inf = 0, zeros = 0, finite = 0, bins[Description::kBins] = {};
      double low = kInf, high = -kInf, sum = 0, squares = 0;
      for (double x : v) {
        nan += std::isnan(x);
        inf += std::isinf(x);
        zeros += x == 0;
        if (!std::isfinite(x)) continue;
        ++finite;
        low = std::min(low, x);
        high = std::max(high, x);
        sum += x;
      }
      for (double x : v) {
        if (!std::isfinite(x)) continue;
        squares += (x - sum / static_cast<double>(finite)) * (x - sum / static_cast<double>(finite));
        ++bins[high > low
                   ? std::min(static_cast<int>((x - low) * (Description::kBins / (high - low))), Description::kBins - 1)
                   : Description::kBins / 2];
      }
      Tensor t = K::cast(K::constant(v, "float64"), dtype);
      test::at_every_level([&](devices::Level) {
        Description d = describe(t);
        CHECK((d.nan == nan && d.inf == inf && d.zeros == zeros));
        CHECK((d.min == low && d.max == high));
        CHECK(d.mean == Approx(sum / static_cast<double>(finite)).margin(1e-12));
        CHECK(d.std == Approx(std::sqrt(squares / static_cast<double>(finite))).margin(1e-12));
        CHECK(std::equal(bins, bins + Description::kBins, d.bins));
        if (dtype == int64)
          CHECK((d.int_min == static_cast<std::int64_t>(low) && d.int_max == static_cast<std::int64_t>(high)));
      });
    }
}

TEST_CASE("describe of a sparse tensor looks at its entries", "[inspect]") {
  Description d = describe(K::to_sparse(K::constant({{0, 2, 0}, {0, 0, 4}})));
  CHECK(d.sparse);
  CHECK(d.size == 2);
  CHECK(d.mean == 3);
  CHECK(shown(d).find("(2, 3) float32 cpu, sparse, 2 entries") == 0);
}

TEST_CASE("a plot shows the line between its extremes", "[inspect]") {
  Picture p = plot({0, 1, 2, 3}, kAscii);
  CHECK(shown(p) ==
        "3|                     ....'''\n"
        " |              ....''''\n"
        " |      ....''''\n"
        "0|...''''\n"
        " +----------------------------\n"
        "  0                          3");
}

TEST_CASE("pictures of nothing, of one number and of what is not finite", "[inspect]") {
  CHECK(shown(plot(K::zeros({0}), kAscii)) == "nothing to draw: no finite element");
  CHECK(shown(hist(K::constant({NAN, kInf}), kAscii)) == "nothing to draw: no finite element");
  CHECK(shown(imshow(K::zeros({0, 3}), kAscii)) == "nothing to draw: no element");
  CHECK(shown(plot({5}, kAscii)).find("5.5|") == 0);
  CHECK(shown(hist(5, kAscii)).find("1|") == 0);
  CHECK(shown(hist({1.0, NAN, 2.0, kInf}, kAscii)).find("1 NaN and 1 inf left out") != std::string::npos);
  double most = std::numeric_limits<double>::max();
  CHECK(shown(plot(K::constant({-most, NAN, most, kInf}, "float64"), kAscii)).find(" 1.798e+308|") == 0);
  CHECK(shown(hist(K::constant({-most, most}, "float64"), kAscii)).find("1|") == 0);
  std::vector<std::int64_t> extremes{INT64_MIN, INT64_MAX};
  CHECK(shown(plot(extremes, kAscii)).find(" 9.223e+18|") == 0);
  CHECK(shown(Picture()).empty());
  CHECK(plot(K::zeros({0})).pixels().shape() == Shape{400, 640, 3});
}

TEST_CASE("a histogram's bars are as tall as their counts", "[inspect]") {
  CHECK(shown(hist({1, 1, 1, 1, 2, 2, 3, 4},
                   {.title = "counts", .width = 10, .height = 2, .style = Style::ascii, .bins = 4})) ==
        "counts\n"
        "4|##\n"
        "0|####::::\n"
        " +--------\n"
        "  1      4");
}

TEST_CASE("an image is shaded from its least to its largest element", "[inspect]") {
  CHECK(shown(imshow({{0, 3, 6, 9}, {0, 3, 6, 9}}, kAscii)) == " -*@");
  CHECK(shown(imshow({{0, 4}, {0, 4}}, {.style = Style::unicode})) == " █");
  CHECK(shown(imshow({{0, 1}, {1, 0}}, {.style = Style::color})) ==
        "\x1b[38;2;0;0;0m\x1b[48;2;255;255;255m▀\x1b[38;2;255;255;255m\x1b[48;2;0;0;0m▀\x1b[0m");
  // Larger than the frame: averaged.
  CHECK(shown(imshow(K::concatenate({K::zeros({100, 100}), K::ones({100, 100})}, 1),
                     {.width = 4, .height = 4, .style = Style::ascii})) == "  @@");
}

TEST_CASE("colours and braille are there where they are asked for", "[inspect]") {
  Picture p = plot(K::constant({{0, 1}, {1, 0}}), {.width = 12, .height = 2, .style = Style::color});
  CHECK(shown(p).find("\x1b[38;2;0;114;178m") != std::string::npos);
  CHECK(shown(p).find("\x1b[38;2;213;94;0m") != std::string::npos);
  std::string plain = shown(plot({0, 1}, {.width = 12, .height = 2, .style = Style::unicode}));
  CHECK(plain.find('\x1b') == std::string::npos);
  CHECK(plain.find("⠤") != std::string::npos);
  CHECK(plain.find("┤") != std::string::npos);
}

TEST_CASE("the terminal decides where nothing is asked for", "[inspect]") {
  Environment term("TERM", "xterm-256color"), locale("LC_ALL", "C.UTF-8"), color("NO_COLOR", ""),
      columns("COLUMNS", "");
  {
    Terminal t = terminal(-1);  // no terminal at all
    CHECK_FALSE(t.tty);
    CHECK_FALSE(t.color);
    CHECK(t.width == 80);
  }
  if (!PseudoTerminal::there_is()) return test::skip("no pseudo-terminal here");
  PseudoTerminal pty(STDOUT_FILENO);
  Terminal t = terminal(STDOUT_FILENO);
  CHECK(t.tty);
  CHECK(t.color);
  CHECK(t.unicode);
  CHECK(t.width == 40);
  CHECK(t.height == 12);
  CHECK(shown(imshow({{0, 1}, {1, 0}})).find('\x1b') != std::string::npos);
  {
    Environment no("NO_COLOR", "1");
    CHECK_FALSE(terminal(STDOUT_FILENO).color);
    CHECK(shown(plot({0, 1})).find('\x1b') == std::string::npos);
  }
  {
    Environment dumb("TERM", "dumb");
    CHECK_FALSE(terminal(STDOUT_FILENO).color);
    CHECK_FALSE(terminal(STDOUT_FILENO).unicode);
  }
  {
    Environment latin("LC_ALL", "de_DE.ISO-8859-1");
    CHECK_FALSE(terminal(STDOUT_FILENO).unicode);
  }
  winsize unknown{0, 0, 0, 0};
  ioctl(STDOUT_FILENO, TIOCSWINSZ, &unknown);
  CHECK(terminal(STDOUT_FILENO).width == 80);
  CHECK(terminal(STDOUT_FILENO).height == 24);
}

TEST_CASE("a line of many elements keeps its spikes", "[inspect]") {
  std::vector<float> v(1000000);
  v[700000] = 1;
  std::string s = shown(plot(v, kAscii));
  CHECK(s.find("1|") == 0);
  CHECK(s.substr(0, s.find('\n')).find_first_of(".:'") != std::string::npos);
}

TEST_CASE("x and y of a plot are whatever makes a tensor", "[inspect]") {
  std::string right = shown(plot(K::constant({0, 1, 2}), K::constant({0.5, 1.5, 1.0}), kAscii));
  CHECK(shown(plot({0, 1, 2}, {0.5, 1.5, 1.0}, kAscii)) == right);
  CHECK(shown(plot(std::vector<int>{0, 1, 2}, std::vector<double>{0.5, 1.5, 1.0}, kAscii)) == right);
  CHECK(shown(plot({0, 1, 2}, {{0, 1}, {1, 0}, {2, 2}}, kAscii)) == shown(plot({{0, 1}, {1, 0}, {2, 2}}, kAscii)));
  CHECK(shown(plot({0, 1}, {1, 2})).size() > 80);
}

TEST_CASE("titles keep no control characters", "[inspect]") {
  CHECK(shown(plot({0, 1}, {.title = "a\x1b[2Jb\nc", .width = 12, .height = 2, .style = Style::ascii}))
            .find("a [2Jb c\n") == 0);
}

TEST_CASE("a picture keeps what it was made of", "[inspect]") {
  Tensor v = K::variable({0, 1});
  Picture p = plot(v, kAscii);
  std::string before = shown(p);
  K::update(v, K::constant({5, 9}));
  CHECK(shown(p) == before);
  Picture copy = p;
  CHECK(shown(copy) == before);
}

TEST_CASE("pictures are saved as PNG", "[inspect]") {
  test::Folder folder;
  std::string path = folder / "p.png";
  imshow({{0, 1, 2}, {2, 1, 0}}).save(path);
  Tensor image = load_png(path);
  CHECK(image.shape() == Shape{2, 3, 3});
  CHECK(std::vector<int>(image(0).to_vector<int>()) == std::vector<int>{0, 0, 0, 128, 128, 128, 255, 255, 255});
  plot({0, 1, 4, 9}, {.title = "squares"}).save(path);
  image = load_png(path);
  CHECK(image.shape() == Shape{400, 640, 3});
  Tensor blue =
      K::sum(K::cast(K::equal(K::constant(image, "int32"), K::constant({0, 114, 178}, "int32")), "int32"), -1);
  const Tensor line = K::cast(K::equal(blue, K::constant(3, "int32")), "int32");
  CHECK(K::sum(line).item<int>() > 500);
  // It rises, from the bottom at the left: rows count from the top.
  const auto row = [&](const Index& columns) { return K::argmax(K::sum(line(all, columns), 1)).item<std::int64_t>(); };
  CHECK(row(slice(60, 150)) > 250);
  CHECK(K::argmax(K::max(line, 1)).item<std::int64_t>() < 100);
  CHECK(K::sum(line(slice(0, 100), slice(500, None))).item<int>() > 0);
  CHECK(K::sum(line(slice(0, 100), slice(0, 300))).item<int>() == 0);
  hist({1, 2, 2, 3}, {.bins = 3}).save(path);
  CHECK(load_png(path).shape() == Shape{400, 640, 3});
  Tensor colors = imshow(K::constant({{{1.0, 0.5, 0.0, 0.5}}})).pixels();  // half seen through
  CHECK(std::vector<int>(colors.to_vector<int>()) == std::vector<int>{255, 191, 128});
  CHECK_THROWS_WITH(Picture().save(path), "Picture: an empty picture");
}

TEST_CASE("pictures refuse what they cannot show", "[inspect]") {
  CHECK_THROWS_WITH(plot(K::zeros({2, 2, 2})), "plot: y has shape (2, 2, 2); it must be (n,), or (n, k) for k lines");
  CHECK_THROWS_WITH(plot({1, 2, 3}, K::constant({1.0, 2.0})),
                    "plot: x (3,) and y (2,); x must have one element for each of y's first axis");
  CHECK_THROWS_WITH(imshow(K::zeros({2})),
                    "imshow: image has shape (2,); it must be (h, w), (h, w, 1), (h, w, 3) or (h, w, 4)");
  CHECK_THROWS_WITH(hist({1}, {.bins = -1}), "hist: options ask for -1 bins; there must be 1 to 1000");
  CHECK_THROWS_WITH(plot({1}, {.width = -1}), "plot: options ask for -1 x 0 characters; each must be 0 to 10000");
  CHECK_THROWS_AS(plot(K::placeholder({3})), ValueError);
  CHECK_THROWS_AS(hist(Tensor()), ValueError);
}

TEST_CASE("pictures and describe take tensors on a CUDA device", "[inspect][device]") {
  if (!test::has_device("cuda")) return;
  Tensor x = K::constant({0, 1, 2, 3}).to("cuda");
  CHECK(describe(x).mean == 1.5);
  CHECK(shown(describe(x)).find("(4,) float32 cuda:0") == 0);
  CHECK(shown(plot(x, kAscii)) == shown(plot({0, 1, 2, 3}, kAscii)));
  CHECK(memory().has_device);
  CHECK(timeit([&] { return x + 1; }, {.runs = 3, .loops = 2}).median > 0);
}

TEST_CASE("timeit tells how long a call takes", "[inspect]") {
  const auto two_ms = [] {
    for (const auto begin = std::chrono::steady_clock::now();
         std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(2);) {
    }
  };
  int calls = 0;
  Timing t = timeit(
      [&] {
        ++calls;
        two_ms();
      },
      {.runs = 5, .loops = 2});
  CHECK(t.runs == 5);
  CHECK(t.loops == 2);
  CHECK(calls == 11);
  CHECK(t.median >= 2e-3);
  CHECK(t.least <= t.median);
  CHECK(t.kept_nodes == 0);
  CHECK(timeit(two_ms, {.runs = 1}).loops <= 5);
  Timing fast = timeit([] { return K::constant(1) + 1; }, {.seconds = 0.02});
  CHECK(fast.runs >= 5);
  for (int tries = 0; fast.loops < 100 && tries < 20; ++tries)
    fast = timeit([] { return K::constant(1) + 1; }, {.runs = 1});
  CHECK(fast.loops >= 100);  // a busy machine may pause in some of the tries
  Tensors kept;
  Tensor v = K::variable({1, 2});
  Timing grows = timeit([&] { kept.push_back(v * 2); }, {.runs = 2, .loops = 10});
  CHECK(grows.kept_nodes == 1);
  CHECK(shown(grows).find("leaves 1 node ") != std::string::npos);
  Timing made{.median = 1.5e-5, .least = 1.25e-5, .spread = 2e-7, .runs = 7, .loops = 100};
  CHECK(shown(made) == "15 us a call (least 12.5 us, half of the runs within 200 ns; 7 runs of 100)");
  CHECK_THROWS_WITH(timeit([] {}, {.runs = -1}),
                    "timeit: options hold runs -1, loops 0, seconds 0.5; none may be negative");
}

TEST_CASE("progress gives the elements and is silent off a terminal", "[inspect]") {
  std::vector<std::int64_t> seen;
  for (auto i : progress(3)) seen.push_back(i);
  CHECK(seen == std::vector<std::int64_t>{0, 1, 2});
  std::vector<int> v{5, 6};
  for (int& x : progress(v)) ++x;
  CHECK(v == std::vector<int>{6, 7});
  int sum = 0;
  for (int x : progress(std::vector<int>{1, 2, 3}, "sum")) sum += x;
  CHECK(sum == 6);
  for (auto i : progress(0)) FAIL("there is none: " << i);
}

TEST_CASE("progress draws a bar on a terminal", "[inspect]") {
  Environment term("TERM", "xterm"), locale("LC_ALL", "C.UTF-8");
  if (!PseudoTerminal::there_is()) return test::skip("no pseudo-terminal here");
  PseudoTerminal pty(STDERR_FILENO);
  for (auto i : progress(4, "epochs")) static_cast<void>(i);
  std::string s = pty.text();
  CHECK(s.find("\repochs   0% ") == 0);
  CHECK(s.find("epochs 100% ") != std::string::npos);
  CHECK(s.find(" 4/4, ") != std::string::npos);
  CHECK(s.substr(s.size() - 2) == "\r\n");
}

TEST_CASE("the line of a progress bar fits the terminal", "[inspect]") {
  CHECK(progress_text("", 5, 10, 2, 60, false) == " 50% [##############               ] 5/10, 2.5/s, 0:02 left");
  CHECK(progress_text("a", 0, 10, 0, 20, false) == "a   0%  0/10, 0/s, 0:00");
  CHECK(progress_text("", 7, -1, 70, 80, true) == "7, 10 s each, 1:10");
  CHECK(progress_text("", 0, 0, 0, 80, false).find("100% [") == 0);
  for (int width : {10, 30, 50, 200})
    CHECK(progress_text("x", 3, 9, 1, width, false).size() <= static_cast<std::size_t>(std::max(width, 40)) + 45);
}

TEST_CASE("memory tells what the process holds", "[inspect]") {
  Tensor held = K::zeros({1 << 20});
  MemoryReport m = memory();
  CHECK(m.host.live >= 4 << 20);
  if (std::ifstream("/proc/self/statm")) CHECK(m.resident > 0);  // a bare chroot has none
  CHECK(shown(m).find("cpu: ") == 0);
  CHECK(shown(m).find("\ntape: ") != std::string::npos);
}
