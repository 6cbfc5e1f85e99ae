// include/kassette/prompt.h - the names that can be used without a prefix at the prompts of kassette repl and cling.
// Not for programs.
#ifndef KASSETTE_PROMPT_H
#define KASSETTE_PROMPT_H
#include <kassette/display.h>
#include <kassette/integrate.h>
#include <kassette/nn.h>
#include <kassette/none.h>
#include <kassette/numpy.h>
#include <kassette/optimize.h>
#include <kassette/profile.h>
#include <kassette/transforms.h>

namespace K = kassette::backend;
namespace nn = kassette::nn;
namespace np = kassette::numpy;
using kassette::describe;
using kassette::detect_nan;
using kassette::grad;
using kassette::hessian;
using kassette::hist;
using kassette::imshow;
using kassette::jacobian;
using kassette::memory;
using kassette::None;
using kassette::plot;
using kassette::profile;
using kassette::progress;
using kassette::Shape;
using kassette::show_program;
using kassette::show_tape;
using kassette::slice;
using kassette::Tensor;
using kassette::Tensors;
using kassette::timeit;
using kassette::value_and_grad;
using kassette::vmap;
using kassette::repl::clear_output;
using kassette::repl::display;
using kassette::repl::Live;

#endif  // KASSETTE_PROMPT_H
