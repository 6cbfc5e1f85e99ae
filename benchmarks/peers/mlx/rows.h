// The files of MLX's rows.
#pragma once

/// The rows of convolution.cpp.
void convolution_rows();
