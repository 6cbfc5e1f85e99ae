// include/kassette/nn.h - the functions of neural networks: namespace nn = kassette::nn.
//
// The functions have the names, the order of arguments and the defaults of Keras 3: of keras.ops.nn, and of
// keras.losses for the losses. K has Keras 2's, of which some differ: nn::hard_sigmoid has another slope, nn::gelu is
// an approximation unless told otherwise. Arguments are converted as those of np: containers keep their dtype, and
// dtypes of one kind are promoted.
#ifndef KASSETTE_NN_H
#define KASSETTE_NN_H
#include <kassette/nn/activations.h>
#include <kassette/nn/attention.h>
#include <kassette/nn/convolution.h>
#include <kassette/nn/losses.h>
#include <kassette/nn/normalization.h>

#endif  // KASSETTE_NN_H
