// nn_backend/inspect/axes.h - axes and labels around plots and histograms.
#pragma once
#include <functional>
#include <string>

#include <kassette/tensor.h>

#include "nn_backend/inspect/drawing.h"

namespace kassette::inspect {

/// The values that an axis spans.
struct Range {
  double low, high;
};
/// [low, high]; if that has no width, widened to both sides.
Range widened(double low, double high);

/// A number of an axis, with four significant digits.
std::string label(double v);

/// How many columns are left for the picture beside the labels of the y axis.
int inner_width(const PlotFrame& frame, Range y);
/// The rows of a picture with axes and labels. row(i) returns row i, at most `columns` characters wide.
std::string with_axes(int rows, int columns, Range x, Range y, bool unicode,
                      const std::function<std::string(int)>& row);

/// The rectangle inside the axes.
struct PlotBox {
  int left, top, right, bottom;
};
/// An image of 640 x 400 pixels with axes; `draw` fills the rectangle inside them.
Tensor with_axes(Range x, Range y, const char* title, const std::function<void(PixelCanvas&, const PlotBox&)>& draw);

inline constexpr const char* kNothing = "nothing to draw: no finite element";

}  // namespace kassette::inspect
