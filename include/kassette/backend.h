// include/kassette/backend.h - the Keras backend API: namespace K = kassette::backend.
#ifndef KASSETTE_BACKEND_H
#define KASSETTE_BACKEND_H
#include <kassette/api.h>
#include <kassette/backend/config.h>
#include <kassette/backend/control.h>
#include <kassette/backend/activations.h>
#include <kassette/backend/comparison.h>
#include <kassette/backend/convolution.h>
#include <kassette/backend/creation.h>
#include <kassette/backend/ctc.h>
#include <kassette/backend/elementwise.h>
#include <kassette/backend/graph.h>
#include <kassette/backend/introspection.h>
#include <kassette/backend/losses.h>
#include <kassette/backend/normalization.h>
#include <kassette/backend/padding.h>
#include <kassette/backend/random.h>
#include <kassette/backend/linalg.h>
#include <kassette/backend/reductions.h>
#include <kassette/backend/refusals.h>
#include <kassette/backend/rnn.h>
#include <kassette/backend/shaping.h>
#include <kassette/backend/softmax.h>
#include <kassette/backend/sparse.h>
#include <kassette/backend/state.h>
#include <kassette/borrow.h>
#include <kassette/error.h>
#include <kassette/kept.h>
#include <kassette/none.h>
#include <kassette/print.h>
#include <kassette/tensor.h>

namespace kassette {
namespace backend {
using kassette::None;
using kassette::Tensor;
using kassette::Tensors;
}  // namespace backend
}  // namespace kassette

#endif  // KASSETTE_BACKEND_H
