// nn_backend/testing/testing_report.h - the texts of failed comparisons.
#pragma once
#include <string>

#include <kassette/testing.h>

namespace kassette::testing::detail {

std::string number_text(double v);
/// The index of element `at` in row-major order: "(1, 2)" for element 5 of a (2, 3).
std::string place(const Shape& shape, std::int64_t at);
/// A failed comparison; the seeds of the random tensors in use are added to its message.
Comparison failed(std::string message, std::string more = "");
/// `actual` with its columns as close to those of `expected`, which has its shape, as any_sign and any_order allow.
Tensor matched_columns(const Tensor& actual, const Tensor& expected, const Tolerance& tolerance);

}  // namespace kassette::testing::detail
