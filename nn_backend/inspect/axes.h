// nn_backend/inspect/axes.h - the frame round plots and histograms.
#pragma once
#include <functional>
#include <string>

#include <kassette/tensor.h>

#include "nn_backend/inspect/drawing.h"

namespace kassette {

struct Range {
  double low, high;
};
/// Of no width: somewhat to both sides.
Range widened(double low, double high);

/// Four digits.
std::string label(double v);

/// How many characters are left for the rows of a picture with such an axis.
int inner_width(const PlotFrame& frame, Range y);
/// The rows with the axes and their labels. `row` gives the characters of one, `columns` wide at most.
std::string with_axes(int rows, int columns, Range x, Range y, bool unicode,
                      const std::function<std::string(int)>& row);

/// 640 x 400 pixels with axes; `draw` fills the inner rectangle.
struct PlotBox {
  int left, top, right, bottom;
};
Tensor with_axes(Range x, Range y, const char* title, const std::function<void(PixelCanvas&, const PlotBox&)>& draw);

inline constexpr const char* kNothing = "nothing to draw: no finite element";

}  // namespace kassette
