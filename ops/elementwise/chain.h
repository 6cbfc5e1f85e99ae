// ops/elementwise/chain.h - the opcodes of chains: a fused group of elementwise ops runs as threaded code that keeps
// its values in registers.
#pragma once
#include "ops/elementwise/binary.h"
#include "ops/elementwise/unary.h"

namespace kassette::ops {

// Note [Chains]
// Running one loop per op over blocks in the first-level cache costs a load and a store per op, and stalls on memory at
// the start of every block. A chain is threaded code instead: each opcode works on a chunk of a few vectors, which stay
// in registers, and jumps to the next opcode; the last one goes on to the next chunk. A chunk has four vectors, or
// eight (as many as the calling convention passes in registers) if there are many elements: that halves the jumps and
// doubles the independent work. So an op costs its arithmetic and one jump, which processors predict, and the loads of
// later chunks run ahead of it. Ops that take long enough by themselves have no opcode: their kernel loop runs on a
// chunk in memory. The values are bit for bit those of the kernel loops.
//
// On a CUDA device the code is data that one kernel interprets (ops/elementwise/chain.cu). There an operand may also be
// a row that repeats, such as the bias after a matrix product, or the columns of a matrix, as a gate of a recurrent
// cell is.

/// The bytes of the largest chunk: eight vectors of AVX-512.
constexpr std::int64_t kMaxChunkBytes = 512;

/// An opcode: on the CPU the address of the code that runs it, on a CUDA device a number.
struct ChainOpcode {
  void (*handler)();    // type-erased: its type has vectors as parameters and depends on the CPU level
  std::uint8_t number;  // an opcode of DeviceChain
  bool reversed;        // acc = operand op acc
  explicit operator bool() const { return handler || number; }
};

/// An opcode with its operand. It works on the chunk in registers, called `acc`.
struct ChainCode {
  ChainOpcode opcode;
  std::byte* operand;         // address of the operand or of the target of a store, for the first chunk or for all
  std::int64_t advance_mask;  // mask for offsets: all ones if `operand` advances with the chunks, else 0
  struct Call {
    ElementwiseFn fn;
    const Attrs* attrs;
  };
  union {
    ChainAttrs attrs;  // of a unary op
    Call called;       // for `call`
  };
};

/// The location of an operand: memory that advances with the chunks, or a temporary chunk that each thread has for
/// itself.
struct ChainOperand {
  std::byte* base = nullptr;  // null: a chunk, or a buffer
  int chunk = -1;
  int buffer = -1;           // number of a buffer whose address is set before each run (Chain::place_buffers)
  std::int64_t offset = 0;   // byte offset into the buffer
  std::int64_t row_gap = 0;  // bytes between the end of a row and the start of the next; negative to read a row again
};

/// A chunk filled with one element, which is read from memory (0 where `from` is null) or from a buffer.
struct ChainConstant {
  const std::byte* from;
  int buffer, chunk;
};

/// The shape that a chain runs over: `rows` rows of `width` elements.
struct ChainShape {
  std::int64_t rows = 1, width;
  std::int64_t numel() const { return rows * width; }
};

/// The opcodes of one CPU level and chunk size, or of a CUDA device. Indices [2]: 0 for float32, 1 for float64. An
/// empty entry means that the op has no opcode, and `call` runs its loop.
struct ChainTable {
  int chunk_bytes;
  const ChainOpcode* unary[2];                 // in the order of UnaryOps: acc = op(acc)
  const ChainOpcode *binary[2], *reversed[2];  // in the order of BinaryOps: acc = acc op operand; acc = operand op acc
  ChainOpcode call[2];                         // acc = loop(acc), with the chunk at `operand` as the loop's memory
  ChainOpcode load[2], store[2];               // acc = operand; operand = acc
  ChainOpcode stream[2];                       // operand = acc, past the caches; the operand is aligned to a vector
  ChainOpcode prefetch[2];                     // prefetches later chunks of the operand
  ChainOpcode end[2];                          // begins the next chunk; `operand` is the first ChainCode
  /// Runs the code on the chunks at byte offsets from `begin` up to `end`.
  void (*run[2])(const ChainCode* code, std::int64_t begin, std::int64_t end);
  /// Fills a chunk with `n` elements, and with ones after them, on which no op traps or slows down.
  void (*pad[2])(void* chunk, const void* from, std::int64_t n);
  /// Fills a chunk with one element.
  void (*repeat[2])(void* chunk, const void* from);
};
/// Return the opcode of an op; an empty one if there is none and `call` runs its loop. `is_double`: 1 for float64.
/// `reversed`: acc = operand op acc.
ChainOpcode unary_opcode(const ChainTable& table, int is_double, const OpDef& op);
ChainOpcode binary_opcode(const ChainTable& table, int is_double, const OpDef& op, bool reversed);

/// The opcodes of one CPU level.
struct ChainTables {
  const ChainTable &usual, &large;  // with chunks of four and of eight vectors
};
KASSETTE_LEVEL_TABLES(ChainTables, chain_tables)

}  // namespace kassette::ops
