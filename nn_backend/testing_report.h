// nn_backend/testing_report.h - what comparisons say.
#pragma once
#include <string>

#include <kassette/testing.h>

namespace kassette::testing {

std::string number_text(double v);
/// "(1, 2)" for element 5 of a (2, 3).
std::string place(const Shape& shape, std::int64_t at);
/// A failed comparison; the seeds of random tensors belong to what it says.
Comparison failed(std::string message, std::string more = "");

}  // namespace kassette::testing
