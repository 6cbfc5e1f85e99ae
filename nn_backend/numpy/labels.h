// nn_backend/numpy/labels.h - tensors with labelled axes, of which products are made.
#pragma once
#include <algorithm>
#include <vector>

#include "nn_backend/numpy/arguments.h"

namespace kassette::numpy {

/// The labels of a tensor's axes: any numbers.
using LabelList = std::vector<int>;
struct Labelled {
  Tensor tensor;
  LabelList labels;
};
inline bool has(const LabelList& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

/// The product of two tensors whose axes are not labelled twice, with these labels, which are all among theirs: summed
/// over the others, each of which both have. Sizes of one label are equal.
Tensor contract(const Labelled& a, const Labelled& b, const LabelList& out);

}  // namespace kassette::numpy
