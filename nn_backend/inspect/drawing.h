// nn_backend/inspect/drawing.h - the kinds of pictures, each as text and as pixels.
#pragma once
#include <string>

#include <kassette/inspect.h>

#include "nn_backend/inspect/canvas.h"

namespace kassette::inspect {

/// The size of a picture made of text, and the characters to use.
struct PlotFrame {
  int width, height;  // in characters
  int image_height;   // of an image, which may fill the screen
  Glyphs glyphs;
};
PlotFrame frame_of(Style style, int width, int height);

// All tensors are on the host. For plots x is (n,) or empty, and y is (n,) or (n, k).
std::string plot_text(const Tensor& x, const Tensor& y, const PlotFrame& frame);
Tensor plot_pixels(const Tensor& x, const Tensor& y, const char* title);
std::string hist_text(const Tensor& x, int bins, const PlotFrame& frame);
Tensor hist_pixels(const Tensor& x, int bins, const char* title);
std::string image_text(const Tensor& image, const PlotFrame& frame);
Tensor image_pixels(const Tensor& image);

}  // namespace kassette::inspect
