// nn_backend/comforts/drawing.h - the kinds of pictures, each as text and as pixels.
#pragma once
#include <string>

#include <kassette/comforts.h>

#include "nn_backend/comforts/canvas.h"

namespace kassette {

/// How large a text may be, and of what.
struct Frame {
  int width, height;   // in characters
  int image_height;    // an image may take the screen
  Glyphs glyphs;
};
Frame frame_of(Style style, int width, int height);

// Tensors on the host. plot: x (n,) or empty, y (n,) or (n, k).
std::string plot_text(const Tensor& x, const Tensor& y, const Frame& frame);
Tensor plot_pixels(const Tensor& x, const Tensor& y, const char* title);
std::string hist_text(const Tensor& x, int bins, const Frame& frame);
Tensor hist_pixels(const Tensor& x, int bins, const char* title);
std::string image_text(const Tensor& image, const Frame& frame);
Tensor image_pixels(const Tensor& image);

}  // namespace kassette
