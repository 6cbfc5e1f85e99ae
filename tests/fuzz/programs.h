// tests/fuzz/programs.h - random programs of functions of K and np, as data, so that one program can be run in many
// ways.
#pragma once
#include <kassette/backend.h>

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace kassette::test {

/// The sizes that a program is run with: samples and time steps.
struct Sizes {
  std::int64_t batch, time;
};
// sizes that a program does not know; the last, and those below, depend on data
constexpr int kBatch = -1, kTime = -2, kRagged = -3;
/// The shape of a value: numbers, or the constants above.
using Type = std::vector<int>;

struct Instruction;
/// A block of code with arguments; it can use all values of the enclosing blocks. Values are numbered through the
/// scopes.
struct Block {
  int first = 0;  // the number of its first argument
  std::vector<Type> arguments;
  std::vector<Instruction> code;
  std::vector<int> results;
};

enum class Kind : std::uint8_t {
  unary,
  binary,
  number,
  reduce,
  reduce_all,
  mean_free,
  dot,
  conv,
  slice,
  concatenate,
  gather,
  permute,
  dropout,
  where,
  cast,
  head,
  sequence,
  branch,
  phase,
  fold,
  map,
  rnn,
  call,
  print,
  ragged,
  gradient,
  matmul,
  vecdot,
  take,
  put,
  solve,
  diff,
  top_k
};
constexpr int kKinds = 33;

/// The ops of Kind::unary and Kind::binary by numbers[0], as draw_program.cpp draws them and play_program.cpp runs
/// them: first those that finite differences can check; from kPlainUnary on, those with a gradient of another function.
inline constexpr const char* kUnary[] = {
    "tanh", "sigmoid", "softsign", "sin", "cos", "square", "neg", "half", "softplus", "exp_neg_square", "sqrt1",
    "identity", "erf", "arctan", "log1p_square", "sinh_tanh",
    // which finite differences cannot check
    "relu", "abs", "elu", "clip", "maximum0",
    // along the last axis
    "softmax", "reverse", "cumsum", "logcumsumexp", "roll", "sort", "cummax", "stop", "round", "sign", "log1"};
inline constexpr int kIdentity = 11, kSmoothUnary = 16, kRelu = 16, kAlongAxis = 21, kPlainUnary = 28, kUnaryOps = 32;
inline constexpr const char* kBinary[] = {"add",       "subtract", "multiply", "divide",  "fraction",
                                          "logaddexp", "arctan2",  "hypot",    "maximum", "minimum"};
inline constexpr int kSmoothBinary = 8, kBinaryOps = 10;

/// Computes one or more values from `in`; the kind decides the meaning of the numbers and blocks.
struct Instruction {
  Instruction(Kind k, std::vector<int> from, std::vector<int> n, double c = 0)
      : kind(k), in(std::move(from)), numbers(std::move(n)), constant(c) {}
  Kind kind;
  std::vector<int> in, numbers;
  double constant;
  std::vector<Block> blocks;
  std::vector<Type> made;  // the shapes of the values
};

/// An update of a weight at the end of a program.
struct Change {
  int weight, value;
  int mode;  // 0: sets, 1: adds, 2: subtracts
};

struct Program {
  std::uint64_t seed;
  DType dtype;
  std::vector<Type> inputs, weights;  // the values 0, 1, ... are the inputs, then the weights
  int indices;                        // which input holds indices of a gather, by times; -1: none
  Block body;
  std::vector<Change> changes;
  std::vector<int> losses;  // per result: 0 its sum, 1 the mean of squares, 2 the sum of its sine
  Sizes sizes[2];
  bool draws = false, branches = false, loops = false, stops = false, phase = false;
  bool inner = false;      // gradients are among the values
  bool invariant = false;  // a loop returns a value that is the same in each step
  // narrow: something is float32 for a while. nests: sums within sums, whose order is not that of the plain ops
  bool calls = false, narrow = false, nests = false;
};

/// What the results of a block need: values by number. Those of the block itself stay in `live`.
std::set<int> needed(const Block& b, std::set<int> live);

/// Draws a program. `smooth`: only ops that finite differences can check.
Program draw_program(std::uint64_t seed, bool smooth);
/// Replaces instruction k by copies of earlier values. Returns false if that is not possible. `end`: k is past the last
/// instruction.
bool shrink_program(Program& p, int k, bool& end);
std::string text(const Program& p);

/// How to run a program.
struct Playing {
  bool functions = false;  // calls of functions are made as calls; else their ops are inlined
  bool unknown = false;    // the placeholders of these functions have unknown sizes
};
/// Runs a program and returns the results of its body. `values`: inputs, then weights. `changed` gets the new values of
/// the weights.
Tensors play(const Program& p, const Tensors& values, const Playing& how, Tensors* changed = nullptr);
/// The loss, which is differentiated.
Tensor loss_of(const Program& p, const Tensors& results);
/// Values of inputs, then weights; they depend on `which`. `bad`: the time step that gets an index out of range, or -1.
Tensors values_for(const Program& p, const Sizes& sizes, int which, std::int64_t bad = -1);

}  // namespace kassette::test
