// ops/chain.h - chains of elementwise ops with their values in registers: what a plan fuses runs as a program of these.
#pragma once
#include "ops/binary.h"
#include "ops/unary.h"

namespace kassette {

// Note [Chains]
// One loop an op through the first-level cache costs a load and a store an op, and waits for memory at the head of every
// block. A chain is threaded code instead: each instruction works on a chunk of a few vectors, which stay in registers, and
// jumps to the next; the last one moves on to the next chunk. Chunks are of four vectors, or of eight (as many as are passed in
// registers) where there is much: half the jumps, and twice as much that does not wait for one another. So an op costs its arithmetic and one jump, which processors
// predict, and the loads of the chunks to come run ahead of it. An op that has no instruction here, being long enough
// itself, runs its loop on a chunk in memory. Values are those of the loops to the last bit.
// On a device the program is data that one kernel interprets (ops/chain.cu); there an operand may also be a row that repeats, as a
// bias is behind a product.
constexpr std::int64_t kMaxChunkBytes = 512;

/// Ops whose value is short; of the others the loops are called.
using ShortUnary = OpList<Negative, Abs, Sign, Square, Sqrt, Rsqrt, Tanh, Softsign, Round, Relu, LeakyRelu, GeneralRelu,
                          HardSigmoid, Clip>;
using ShortBinary = OpList<Add, Subtract, Multiply, Divide, MulNoNan, DivNoNan, WherePositive, Maximum, Minimum>;
template <class Op, class... Ops>
constexpr bool is_among(OpList<Ops...>) {
  return (std::is_same_v<Op, Ops> || ...);
}

struct ChainCode;
using ChainStep = void (*)();  // its true type has vectors for parameters and is known to its level

/// An instruction on the chunk in registers, `acc`.
struct ChainCode {
  ChainStep step;
  std::byte* operand;  // where the operand, or what acc is stored to, is: for the first chunk, or for all
  std::int64_t moves;  // a mask: all ones where `operand` moves on with the chunks
  Params params;
  Loop loop;  // of `call` alone
  const Attrs* attrs;
};

/// Where an operand of a chain is: memory that moves on with the chunks, or a chunk of the part's own.
struct Place {
  std::byte* base = nullptr;  // null: the chunk, or memory of a source
  int chunk = -1;
  int source = -1;         // whose memory it is, to be said before each run
  std::int64_t first = 0;  // bytes from there on
  std::int64_t skip = 0;   // bytes between the end of a row and the start of the next; negative to read a row again
};

/// A chunk that repeats one element, of memory or of a source.
struct ChainOne {
  const std::byte* from;
  int source, chunk;
};

/// Elements, or rows of them.
struct ChainShape {
  std::int64_t rows = 1, width;
  std::int64_t numel() const { return rows * width; }
};

/// By dtype: 0 float32, 1 float64. Where no step is, `call` runs the loop.
struct ChainTable {
  int chunk_bytes;
  const ChainStep* unary[2];               // in the order of UnaryOps: acc = op(acc)
  const ChainStep *binary[2], *turned[2];  // of BinaryOps: acc = acc op operand; acc = operand op acc
  ChainStep call[2];                       // acc = loop(acc), by way of the operand
  ChainStep load[2], store[2];             // acc = operand; operand = acc
  ChainStep fetch[2];                      // asks for chunks of the operand to come
  ChainStep end[2];                        // on with `operand`, the first instruction
  /// Runs the program on the chunks at byte offsets from `begin` up to `end`.
  void (*run[2])(const ChainCode* program, std::int64_t begin, std::int64_t end);
  /// A chunk of `n` elements and ones, as loops have them past the end; a chunk of one element again and again.
  void (*pad[2])(void* chunk, const void* from, std::int64_t n);
  void (*repeat[2])(void* chunk, const void* from);
};
/// The instruction for a row; null where `call` runs its loop. `is_double`: float64. `turned`: acc = operand op acc.
ChainStep unary_step(const ChainTable& table, int is_double, const OpDef& op);
ChainStep binary_step(const ChainTable& table, int is_double, const OpDef& op, bool turned);

struct ChainTables {
  const ChainTable &usual, &large;  // with chunks of four and of eight vectors
};
KASSETTE_LEVEL_TABLES(ChainTables, chain_tables)

}  // namespace kassette
