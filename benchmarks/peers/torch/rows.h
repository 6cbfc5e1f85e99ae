// The files of PyTorch's rows.
#pragma once

/// The rows of kernels.cpp.
void kernel_rows();
/// The rows of numpy.cpp.
void numpy_rows();
/// The rows of convolution.cpp.
void convolution_rows();
