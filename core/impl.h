// core/impl.h - what is behind a Tensor: its body, and the node of the tape that made it.
#pragma once
#include <atomic>
#include <cstring>
#include <new>
#include <string>
#include <type_traits>

#include <kassette/tensor.h>

#include "core/attrs.h"
#include "core/context.h"
#include "core/ref.h"
#include "core/storage.h"

namespace kassette {

class Branch;
struct OpDef;
struct Node;
struct Cell;

inline constexpr std::int64_t kUnknown = -1;
/// Whether two sizes (or ranks) are known and not equal: nothing that is found out later makes them one.
constexpr bool differ(std::int64_t a, std::int64_t b) { return a != b && a >= 0 && b >= 0; }

struct TensorSpec;
[[noreturn]] void fail_size(const TensorSpec& spec, const char* what);
inline constexpr std::int64_t kMostBytes = std::int64_t(1) << 56;  // of one tensor

/// Shape and dtype: what a rule answers. Unknown dims are -1; an unknown rank is -1 (its dims mean nothing).
struct TensorSpec {
  std::int64_t dims[kMaxRank];
  std::int8_t rank;
  DType dtype;

  TensorSpec() : rank(0), dtype() {}
  TensorSpec(DType type, std::initializer_list<std::int64_t> d)
      : rank(static_cast<std::int8_t>(d.size())), dtype(type) {
    int i = 0;
    for (std::int64_t n : d) dims[i++] = n;
  }
  /// True when rank and dims are known.
  bool known() const {
    if (rank < 0) return false;
    for (int i = 0; i < rank; ++i)
      if (dims[i] < 0) return false;
    return true;
  }
  /// The number of elements of a known shape. What a placeholder declares may have sizes beside a 0 whose product does not fit:
  /// unsigned numbers wrap, and give 0 all the same.
  std::int64_t numel() const {
    std::uint64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= static_cast<std::uint64_t>(dims[i]);
    return static_cast<std::int64_t>(n);
  }
  std::int64_t bytes() const { return numel() * dtype.size(); }
  /// The same; throws ValueError, in the name of `what`, where the size does not fit (2^40 x 2^40). Sizes beside a 0 have to fit
  /// too, as in NumPy: strides are products of some of them.
  std::int64_t checked_bytes(const char* what) const {
    std::int64_t n = dtype.size();
    bool over = false;
    for (int i = 0; i < rank; ++i) over |= __builtin_mul_overflow(n, dims[i], &n);
    if (over || n == 0 || n > kMostBytes) return checked_empty(what);
    return n;
  }
  /// 0 for an empty tensor whose other sizes fit; throws otherwise.
  std::int64_t checked_empty(const char* what) const;
  bool same_shape(const TensorSpec& o) const {
    if (rank != o.rank) return false;
    for (int i = 0; i < rank; ++i)
      if (dims[i] != o.dims[i]) return false;
    return true;
  }
  /// Whether one tensor may have both shapes: an unknown size or rank agrees with any.
  bool compatible(const TensorSpec& o) const {
    bool agree = !differ(rank, o.rank);
    for (int i = 0; agree && i < rank && i < o.rank; ++i) agree = !differ(dims[i], o.dims[i]);
    return agree;
  }
  /// Takes over the sizes that only `o` knows, a compatible shape.
  void refine(const TensorSpec& o) {
    const DType own = dtype;
    if (rank < 0) set(o);
    dtype = own;
    for (int i = 0; i < rank && i < o.rank; ++i)
      if (dims[i] < 0) dims[i] = o.dims[i];
  }
  /// Copies shape and dtype, and the dims that mean nothing with them: four vectors, where a loop would be a call of memcpy.
  void set(const TensorSpec& o) { *this = o; }
  Shape shape() const { return Shape(dims, rank); }
};

/// Tells the core that this thread spins.
inline void cpu_pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

enum Flags : std::uint8_t {
  kSymbolic = 1,  // no value: depends on a placeholder or was built in a symbolic scope
  kPhase = 2,     // depends on the learning phase
  kDraw = 4,      // a random draw or its key: keeps its node, but does not make eager ops record
  kLeaf = 8,      // the node is a leaf with a cell
  kLayer = 16,    // marked as what a layer made; concerns this tensor alone
  kForeign = 32,  // belongs to an external backend: a symbolic leaf that no op of ours takes
  kSparse = 64,   // a handle over indices, values and dense shape, which its node holds: core/sparse.h
};

/// A tensor without its count; nodes and plans hold bodies by value.
struct Body : TensorSpec {
  Device device;
  std::uint8_t flags = 0;
  std::uint8_t level = 0;   // depth of the control-flow body whose placeholders or draws it depends on
  std::uint16_t out = 0;    // which output of the node
  std::int64_t offset = 0;  // bytes into the storage; of a variable's value that a node did not keep: its version
  Ref<Storage> storage;     // null: symbolic, a variable (its cell has the value), or a value that was not saved
  Ref<Node> node;           // null: no history

  Body() = default;
  Body(const Body& o);
  Body(Body&& o) noexcept;
  Body& operator=(const Body& o);
  Body& operator=(Body&& o) noexcept;
  ~Body();
  bool symbolic() const { return flags & kSymbolic; }
  std::byte* data() const { return static_cast<std::byte*>(storage->data) + offset; }
};
static_assert(sizeof(Body) == 96, "nodes hold bodies by value");

struct TensorImpl {
  std::atomic<std::int32_t> count{1};
  Body body;
  static TensorImpl* make(Context& c) {
    c.live_tensors.add(1);
    return new (pool_allocate(c, sizeof(TensorImpl))) TensorImpl;
  }
  static TensorImpl* make() { return make(context()); }
  static void destroy(TensorImpl* impl) noexcept;
};

/// How many outputs a node can have: Body::out tells them apart.
inline constexpr int kMaxOutputs = 65535;

/// One recorded op, or a leaf. Owned by the tensors it produced. The input bodies, and the output bodies if the op's
/// adjoint reads any, follow the struct. Output bodies have no node: that would be a cycle.
struct Node {
  std::atomic<std::int32_t> count{1};
  std::uint32_t n_in;
  std::uint16_t n_out;
  std::uint16_t n_kept;  // output bodies that follow: n_out or 0, or 1 for all where they are alike
  std::int32_t
      function;  // the composition that recorded it: Note [Error attribution], ops/error_attribution.h; 0: the user called the op itself
  union {
    const OpDef* op;   // null: a leaf, or what holds the parts of a sparse tensor
    Node* next_dying;  // of a node that waits to be freed, which no longer needs its op
  };
  Attrs attrs;
  Ref<Cell> cell;                       // of a leaf
  std::int64_t saved = 0;               // bytes of storage held for the adjoint or a replay
  std::uint64_t seq = 0;                // larger than that of every input: what is older than x cannot depend on x
  std::atomic<std::uint64_t> claim{0};  // a walk's number and its index for this node; 0 when no walk is here

  Node(const OpDef* row, const Attrs& with, std::uint32_t ins, std::uint16_t outs, std::uint16_t kept,
       std::int32_t caller)
      : n_in(ins), n_out(outs), n_kept(kept), function(caller), op(row), attrs(with) {}
  Body* in() { return reinterpret_cast<Body*>(this + 1); }
  Body* out() { return in() + n_in; }
  const Body* in() const { return reinterpret_cast<const Body*>(this + 1); }
  const Body* out() const { return in() + n_in; }
  std::size_t bytes() const { return sizeof(Node) + (n_in + n_kept) * sizeof(Body); }

  static Node* make(const OpDef* op, std::uint32_t n_in, std::uint16_t n_out, std::uint16_t n_kept);
  /// The same with the bodies raw memory, which the caller fills before anything else can happen to the node.
  static Node* make_raw(Context& c, const OpDef* op, const Attrs& attrs, std::uint32_t n_in, std::uint16_t n_out,
                        std::uint16_t n_kept) {
    std::size_t bytes = sizeof(Node) + (n_in + n_kept) * sizeof(Body);
    void* block = __builtin_expect(bytes <= kMaxPooled, 1) ? pool_allocate(c, bytes) : ::operator new(bytes);
    c.live_nodes.add(1);
    return new (block) Node(op, attrs, n_in, n_out, n_kept, c.function);
  }
  /// Frees along a list, never by recursion: a chain of 10^7 nodes has to fit an 8 MB stack.
  static void destroy(Node* node) noexcept;
};

inline Body::Body(const Body& o)
    : TensorSpec(o), device(o.device), flags(o.flags), level(o.level), out(o.out), offset(o.offset), storage(o.storage),
      node(o.node) {}
inline Body::Body(Body&& o) noexcept
    : TensorSpec(o), device(o.device), flags(o.flags), level(o.level), out(o.out), offset(o.offset),
      storage(std::move(o.storage)), node(std::move(o.node)) {}
inline Body& Body::operator=(const Body& o) {
  Body copy(o);
  *this = std::move(copy);
  return *this;
}
inline Body& Body::operator=(Body&& o) noexcept {
  TensorSpec::operator=(o);
  device = o.device;
  flags = o.flags;
  level = o.level;
  out = o.out;
  offset = o.offset;
  storage = std::move(o.storage);
  node = std::move(o.node);
  return *this;
}
inline Body::~Body() = default;

enum class Leaf : std::uint8_t { variable, placeholder, source };

/// The bytes a variable has now.
struct Value {
  Ref<Storage> storage;
  std::int64_t offset = 0;
  std::int64_t version = 0;
};

/// What a leaf owns. A variable's value is read and swapped under the lock.
struct Cell {
  std::atomic<std::int32_t> count{1};
  Leaf kind;
  bool in_body = false;  // a placeholder of a body of control flow
  bool trainable = true;
  bool learning_phase = false;
  mutable std::atomic<std::uint8_t> lock_{0};
  TensorSpec spec;  // of what is fed or held
  Device device;
  Value value;                          // variable: its value; placeholder: its default or nothing. See set().
  std::atomic<std::uint64_t> draws{0};  // source: how often it has been drawn
  std::uint64_t seed = 0;
  char* name = nullptr;
  Ref<Extra> constraint;  // kept for optimizers, never applied here
  Ref<Extra> handle;      // of a tensor of an external backend

  void lock() const {
    while (lock_.exchange(1, std::memory_order_acquire)) wait();
  }
  void unlock() const { lock_.store(0, std::memory_order_release); }
  Value load() const {
    lock();
    Value v = value;
    unlock();
    return v;
  }
  void store(Value v) {
    lock();
    set(v);
    unlock();
  }
  /// Swaps the value for `v`; under the lock. Whoever writes into the bytes instead calls changed(): versions tell a later
  /// walk whether the value that an op read is still there.
  void set(Value& v) {
    std::swap(value, v);
    value.version = v.version;
    changed();
  }
  void changed() { ++value.version; }
  static void destroy(Cell* cell) noexcept;

 private:
  void wait() const;  // spins a little, then yields: a commit in place holds the lock for as long as it writes
};

/// A leaf tensor's body: variable, placeholder or source.
Tensor make_leaf(Leaf kind, const TensorSpec& spec, Device device, Value value, Name name);

/// The library's way into the public classes.
struct Access {
  static TensorImpl* impl(const Tensor& t) { return t.impl_; }
  static Body& body(const Tensor& t) { return t.impl_->body; }
  /// Takes over the count that the caller has.
  static Tensor adopt(TensorImpl* impl) { return Tensor(impl); }
  static Tensor wrap(Body body);

  static Scalar::Kind kind(const Scalar& s) { return s.kind_; }
  static std::int64_t int_value(const Scalar& s) { return s.int_; }
  static double float_value(const Scalar& s) { return s.float_; }
  static const void* pointer(const Scalar& s) { return s.pointer_; }
  static std::size_t count(const Scalar& s) { return s.count_; }
  static DType dtype(const Scalar& s) { return s.dtype_; }

  static Index::Kind kind(const Index& i) { return i.kind_; }
  static std::uint8_t has(const Index& i) { return i.has_; }
  static std::int64_t start(const Index& i) { return i.start_; }
  static std::int64_t stop(const Index& i) { return i.stop_; }
  static std::int64_t step(const Index& i) { return i.step_; }
  static const void* pointer(const Index& i) { return i.pointer_; }
  static std::string text(const Index& i) {
    return std::string(i.pointer_ ? static_cast<const char*>(i.pointer_) : "", static_cast<std::size_t>(i.stop_));
  }

  static bool lazy(const Branch& b);
  static const Operand& value(const Branch& b);
  static Tensor call(const Branch& b);
  static bool returns_number(const Branch& b);
  static Operand number(const Branch& b);
};

}  // namespace kassette
