// nn_backend/inspect/picture.cpp - plot(), hist() and imshow(): checks of the arguments, and the choice of the data to
// draw.
#include <kassette/inspect.h>
#include <kassette/io.h>

#include <ostream>

#include "nn_backend/inspect/drawing.h"
#include "nn_backend/inspect/tensor_to_inspect.h"
#include "core/sparse.h"
#include "core/text.h"

namespace kassette {
using namespace inspect;
using namespace ops;

struct PictureAccess {
  static Picture make(Picture::Kind kind, Tensor x, Tensor y, const PictureOptions& o) {
    return Picture(kind, std::move(x), std::move(y), o);
  }
};

namespace {

/// A copy of the elements on the host, without history, which later updates of a variable do not change.
Tensor drawn(const Operand& x, const At& at) {
  Tensor t = tensor_to_inspect(x, at);
  refuse_sparse(at, t);
  return host_copy(t, t.dtype());
}

void check(const char* what, const PictureOptions& o) {
  if (o.width < 0 || o.height < 0 || o.width > 10000 || o.height > 10000)
    fail<ValueError>({what, "options"}, "ask for ", o.width, " x ", o.height, " characters", kExpected,
                     "each must be 0 to 10000");
  if (o.bins < 0 || o.bins > 1000)
    fail<ValueError>({what, "options"}, "ask for ", o.bins, " bins", kExpected, "there must be 1 to 1000");
}

/// A title with spaces in place of control characters, which would move the cursor or break the line.
Text printable(Name title) {
  std::string s = string_of(title);
  for (char& c : s)
    if (static_cast<unsigned char>(c) < 32 || c == 127) c = ' ';
  return Text(s);
}

}  // namespace

Picture::Picture(Kind kind, Tensor x, Tensor y, const PictureOptions& o)
    : kind_(kind), style_(o.style), width_(o.width), height_(o.height), bins_(o.bins ? o.bins : 40),
      title_(printable(o.title)), x_(std::move(x)), y_(std::move(y)) {}

Picture plot(const Operand& y, const PictureOptions& options) {
  check("plot", options);
  Tensor ys = drawn(y, {"plot", "y"});
  if (ys.ndim() < 1 || ys.ndim() > 2)
    fail<ValueError>({"plot", "y"}, "has shape ", ys.shape(), kExpected, "it must be (n,), or (n, k) for k lines");
  return PictureAccess::make(Picture::kPlot, Tensor(), ys, options);
}
Picture plot_over(const Operand& x, const Operand& y, const PictureOptions& options) {
  check("plot", options);
  Tensor xs = drawn(x, {"plot", "x"}), ys = drawn(y, {"plot", "y"});
  if (ys.ndim() < 1 || ys.ndim() > 2)
    fail<ValueError>({"plot", "y"}, "has shape ", ys.shape(), kExpected, "it must be (n,), or (n, k) for k lines");
  if (xs.ndim() != 1 || xs.size() != std::int64_t(ys.shape()[0]))
    fail<ValueError>({"plot"}, "x ", xs.shape(), " and y ", ys.shape(), kExpected,
                     "x must have one element for each of y's first axis");
  return PictureAccess::make(Picture::kPlot, xs, ys, options);
}
Picture hist(const Operand& x, const PictureOptions& options) {
  check("hist", options);
  return PictureAccess::make(Picture::kHist, drawn(x, {"hist", "x"}), Tensor(), options);
}
Picture imshow(const Operand& image, const PictureOptions& options) {
  check("imshow", options);
  Tensor x = drawn(image, {"imshow", "image"});
  Shape s = x.shape();
  bool good = s.rank() == 2 || (s.rank() == 3 && (s[2] == 1 || s[2] == 3 || s[2] == 4));
  if (!good)
    fail<ValueError>({"imshow", "image"}, "has shape ", s, kExpected,
                     "it must be (h, w), (h, w, 1), (h, w, 3) or (h, w, 4)");
  return PictureAccess::make(Picture::kImage, x, Tensor(), options);
}

Text Picture::text() const {
  PlotFrame frame = frame_of(style_, width_, height_);
  std::string s = title_.empty() || kind_ == kNone ? "" : std::string(title_.c_str()) + '\n';
  if (kind_ == kPlot) s += plot_text(x_, y_, frame);
  if (kind_ == kHist) s += hist_text(x_, bins_, frame);
  if (kind_ == kImage) s += image_text(x_, frame);
  if (!s.empty() && s.back() == '\n') s.pop_back();
  return Text(s);
}
Tensor Picture::pixels() const {
  if (kind_ == kPlot) return plot_pixels(x_, y_, title_.c_str());
  if (kind_ == kHist) return hist_pixels(x_, bins_, title_.c_str());
  if (kind_ == kImage) return image_pixels(x_);
  fail<ValueError>({"Picture"}, "an empty picture");
}
void Picture::save(Name path) const { save_png(path, pixels()); }

std::ostream& operator<<(std::ostream& os, const Picture& picture) { return os << picture.text(); }

}  // namespace kassette
