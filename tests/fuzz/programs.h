// tests/fuzz/programs.h - programs over K, drawn from a seed: data, so that one program is played in many ways.
#pragma once
#include <kassette/backend.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace kassette::test {

/// Sizes that a program is played with: samples and times.
struct Sizes {
  std::int64_t batch, time;
};
constexpr int kBatch = -1, kTime = -2,
              kRagged = -3;  // sizes that a program does not know; the last, and those below, depend on data
/// The shape of a value: sizes, or those above.
using Type = std::vector<int>;

struct Instruction;
/// Code with arguments; it sees what was there where it stands. Values are numbered along the scopes.
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
  gradient
};
constexpr int kKinds = 26;

/// `in` -> one value or several, with numbers and blocks that the kind gives a sense.
struct Instruction {
  Instruction(Kind k, std::vector<int> from, std::vector<int> n, double c = 0)
      : kind(k), in(std::move(from)), numbers(std::move(n)), constant(c) {}
  Kind kind;
  std::vector<int> in, numbers;
  double constant;
  std::vector<Block> blocks;
  std::vector<Type> made;  // what the values are
};

/// What a program does to a weight at its end.
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
  bool invariant = false;  // a loop gives what does not change from step to step
  bool calls = false, narrow = false,
       nests = false;  // narrow: something is float32 for a while. nests: sums within sums, whose order is not that of
                       // the plain ops
};

/// `smooth`: nothing but what finite differences can judge.
Program draw_program(std::uint64_t seed, bool smooth);
/// The same with instruction k replaced by copies of earlier values; false where there is none, or nothing to replace. `end`: k is behind the last.
bool shrink_program(Program& p, int k, bool& end);
std::string text(const Program& p);

/// How to play it.
struct Playing {
  bool functions = false;  // calls of functions are that, else their ops
  bool unknown = false;    // of which the placeholders know no sizes
};
/// The results of the body; `values`: inputs, then weights. `changed`: what the weights are to become.
Tensors play(const Program& p, const Tensors& values, const Playing& how, Tensors* changed = nullptr);
/// What is differentiated.
Tensor loss_of(const Program& p, const Tensors& results);
/// Values of inputs, then weights. `which`: others for another number. `bad`: an index that no gather takes, at that time, or -1.
Tensors values_for(const Program& p, const Sizes& sizes, int which, std::int64_t bad = -1);

}  // namespace kassette::test
