// core/impl.h - the implementation of Tensor: its descriptor, and the node of the tape that produced it.
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
namespace ops {
struct OpDef;
}
struct Node;
struct Cell;

inline constexpr std::int64_t kUnknown = -1;
/// Whether two sizes (or ranks) are both known and differ.
constexpr bool differ(std::int64_t a, std::int64_t b) { return a != b && a >= 0 && b >= 0; }
/// The sum of the sizes of two parts; kUnknown if either size is unknown.
constexpr std::int64_t sum_of_sizes(std::int64_t a, std::int64_t b) { return a < 0 || b < 0 ? kUnknown : a + b; }

struct TensorSpec;
[[noreturn]] void fail_size(const TensorSpec& spec, const char* what);
inline constexpr std::int64_t kMaxBytes = std::int64_t(1) << 56;  // the largest tensor

/// Shape and dtype, the result of a rule. An unknown dim is -1; an unknown rank is -1, and the dims then mean nothing.
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
  /// The number of elements of a known shape. A placeholder may declare a size of 0 together with others whose product
  /// overflows: unsigned numbers wrap, and the result is 0 all the same.
  std::int64_t numel() const {
    std::uint64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= static_cast<std::uint64_t>(dims[i]);
    return static_cast<std::int64_t>(n);
  }
  std::int64_t bytes() const { return numel() * dtype.size(); }
  /// bytes(); throws ValueError, which names the function `what`, if the size is too large (2^40 x 2^40). The sizes are
  /// checked even if another size is 0, as in NumPy: strides are products of some of them.
  std::int64_t checked_bytes(const char* what) const {
    std::int64_t n = dtype.size();
    bool over = false;
    for (int i = 0; i < rank; ++i) over |= __builtin_mul_overflow(n, dims[i], &n);
    if (over || n == 0 || n > kMaxBytes) return checked_empty(what);
    return n;
  }
  /// The slow path of checked_bytes(): 0 for an empty tensor whose other sizes fit; throws otherwise.
  std::int64_t checked_empty(const char* what) const;
  bool operator==(const TensorSpec& o) const { return dtype == o.dtype && same_shape(o); }
  bool same_shape(const TensorSpec& o) const {
    if (rank != o.rank) return false;
    for (int i = 0; i < rank; ++i)
      if (dims[i] != o.dims[i]) return false;
    return true;
  }
  /// Whether a tensor can match both shapes: an unknown size or rank matches any.
  bool compatible(const TensorSpec& o) const {
    bool agree = !differ(rank, o.rank);
    for (int i = 0; agree && i < rank && i < o.rank; ++i) agree = !differ(dims[i], o.dims[i]);
    return agree;
  }
  /// The size of an axis; kUnknown where the rank is unknown.
  std::int64_t dim(int axis) const { return rank < 0 ? kUnknown : dims[axis]; }
  /// Fills in sizes that are unknown here and known in `o`, which is compatible. The dtype stays.
  void refine(const TensorSpec& o) {
    const DType own = dtype;
    if (rank < 0) set(o);
    dtype = own;
    for (int i = 0; i < rank && i < o.rank; ++i)
      if (dims[i] < 0) dims[i] = o.dims[i];
  }
  /// Returns false if the shapes are not compatible, else refines this one. The size along `skip` (-1: none) is not
  /// compared, and stays.
  bool merge(TensorSpec o, int skip) {
    if (skip >= 0 && skip < o.rank) o.dims[skip] = kUnknown;
    if (!compatible(o)) return false;
    refine(o);
    return true;
  }
  /// Copies all of it, unused dims too: that is four vector moves; copying only `rank` dims would call memcpy.
  void set(const TensorSpec& o) { *this = o; }
  Shape shape() const { return Shape(dims, rank); }
};

/// What a descriptor's flags say.
enum TensorFlags : std::uint8_t {
  kSymbolic = 1,  // has no value: depends on a placeholder, or was made in a symbolic scope
  kPhase = 2,     // depends on the learning phase
  kDraw = 4,      // a random draw or its key: has a node, but eager ops on it are not recorded on that account
  kLeaf = 8,      // the node is a leaf with a cell
  kLayer = 16,    // marked by mark_keras_tensor; results computed from it are not marked
  kForeign = 32,  // belongs to an external backend: a symbolic leaf that our own ops refuse
  kSparse = 64,   // a sparse handle; its node holds indices, values and dense shape: core/sparse.h
};

/// All that describes a tensor, without a reference count; nodes and plans hold them by value.
struct TensorDesc : TensorSpec {
  Device device;
  std::uint8_t flags = 0;
  std::uint8_t depth = 0;  // depth of the innermost control-flow body whose placeholders or draws it depends on
  std::uint16_t out = 0;   // index among the outputs of the node
  // A union, as in Node. With two separate members a recorded op of two inputs would take 320 bytes instead of 288, and
  // an eager training step of a small model up to 0.35 % more instructions (function_overhead.sh).
  union {
    std::int64_t offset = 0;  // bytes into the storage
    std::int64_t version;     // in a node's input without storage: that of the value that was read, if it is a variable
  };
  Ref<Storage> storage;  // null: symbolic, a variable (the value is in its cell), or a value that was not saved
  Ref<Node> node;        // null: no history

  TensorDesc() = default;
  TensorDesc(const TensorDesc& o);
  TensorDesc(TensorDesc&& o) noexcept;
  TensorDesc& operator=(const TensorDesc& o);
  TensorDesc& operator=(TensorDesc&& o) noexcept;
  ~TensorDesc();
  bool symbolic() const { return flags & kSymbolic; }
  std::byte* data() const { return static_cast<std::byte*>(storage->data) + offset; }
};
static_assert(sizeof(TensorDesc) == 96, "nodes hold them by value");

/// The ref-counted object that a Tensor points to.
struct TensorImpl {
  std::atomic<std::int32_t> count{1};
  TensorDesc desc;
  /// Inlined because each op calls it.
  __attribute__((always_inline)) static TensorImpl* make(Context& c) {
    c.live_tensors.add(1);
    return new (pool_allocate(c, sizeof(TensorImpl))) TensorImpl;
  }
  static TensorImpl* make() { return make(context()); }
  static void destroy(TensorImpl* impl) noexcept;
};

/// The most outputs that a node can have: TensorDesc::out has 16 bits.
inline constexpr int kMaxOutputs = 65535;

/// A recorded op, or a leaf. Owned by the tensors it produced and by the nodes that read these. The descriptors of the
/// inputs follow the struct in memory, then those of the outputs if the adjoint reads any. Output descriptors have no
/// `node`: that would be a reference cycle.
struct Node {
  std::atomic<std::int32_t> count{1};
  std::uint32_t n_in;
  std::uint16_t n_out;
  std::uint16_t n_saved_out;  // number of output descriptors that follow: 0, n_out, or 1 for all if they are alike
  /// The K function that recorded it: Note [Error attribution], ops/engine/error_attribution.h; 0: the user called the
  /// op.
  std::int32_t function;
  union {
    const ops::OpDef* op;  // null: a leaf, or the holder of the parts of a sparse tensor
    Node* next_dying;      // the next node in the queue of Node::destroy; op is no longer needed there
  };
  Attrs attrs;
  Ref<Cell> cell;          // leaves only
  std::int64_t saved = 0;  // bytes of storage kept for the adjoint or a replay
  std::uint64_t seq = 0;   // larger than that of every input, so that nodes older than x cannot depend on x
  // the backward pass that is visiting this node: its id << 32 | the index of the node there; 0: none
  std::atomic<std::uint64_t> claim{0};

  Node(const ops::OpDef* def, const Attrs& with, std::uint32_t ins, std::uint16_t outs, std::uint16_t kept,
       std::int32_t caller)
      : n_in(ins), n_out(outs), n_saved_out(kept), function(caller), op(def), attrs(with) {}
  TensorDesc* in() { return reinterpret_cast<TensorDesc*>(this + 1); }
  TensorDesc* out() { return in() + n_in; }
  const TensorDesc* in() const { return reinterpret_cast<const TensorDesc*>(this + 1); }
  const TensorDesc* out() const { return in() + n_in; }
  std::size_t bytes() const { return sizeof(Node) + (n_in + n_saved_out) * sizeof(TensorDesc); }

  static Node* make(const ops::OpDef* op, std::uint32_t n_in, std::uint16_t n_out, std::uint16_t n_saved_out);
  /// make() with the descriptors left uninitialized; the caller constructs them before anything else uses the node.
  static Node* make_raw(Context& c, const ops::OpDef* op, const Attrs& attrs, std::uint32_t n_in, std::uint16_t n_out,
                        std::uint16_t n_saved_out) {
    std::size_t bytes = sizeof(Node) + (n_in + n_saved_out) * sizeof(TensorDesc);
    void* block = __builtin_expect(bytes <= kMaxPooled, 1) ? pool_allocate(c, bytes) : ::operator new(bytes);
    c.live_nodes.add(1);
    return new (block) Node(op, attrs, n_in, n_out, n_saved_out, c.function);
  }
  /// Frees iteratively, by a queue: recursion over a chain of 10^7 nodes would overflow an 8 MB stack.
  static void destroy(Node* node) noexcept;
};

inline TensorDesc::TensorDesc(const TensorDesc& o)
    : TensorSpec(o), device(o.device), flags(o.flags), depth(o.depth), out(o.out), offset(o.offset), storage(o.storage),
      node(o.node) {}
inline TensorDesc::TensorDesc(TensorDesc&& o) noexcept
    : TensorSpec(o), device(o.device), flags(o.flags), depth(o.depth), out(o.out), offset(o.offset),
      storage(std::move(o.storage)), node(std::move(o.node)) {}
inline TensorDesc& TensorDesc::operator=(const TensorDesc& o) {
  TensorDesc copy(o);
  *this = std::move(copy);
  return *this;
}
inline TensorDesc& TensorDesc::operator=(TensorDesc&& o) noexcept {
  TensorSpec::operator=(o);
  device = o.device;
  flags = o.flags;
  depth = o.depth;
  out = o.out;
  offset = o.offset;
  storage = std::move(o.storage);
  node = std::move(o.node);
  return *this;
}
inline TensorDesc::~TensorDesc() = default;

/// The kinds of leaves. A random source yields the keys of draws.
enum class Leaf : std::uint8_t { variable, placeholder, random_source };

/// The bytes of a tensor, whose shape and dtype are known elsewhere.
struct Value {
  Ref<Storage> storage;
  std::int64_t offset = 0;   // in bytes
  std::int64_t version = 0;  // of a variable's value: changes with every update; else unused
};

/// The state of a leaf. A variable's value is read and swapped under the lock.
struct Cell {
  std::atomic<std::int32_t> count{1};
  Leaf kind;
  bool in_body = false;  // a placeholder that is an argument of a control-flow body
  bool trainable = true;
  bool learning_phase = false;
  mutable std::atomic<std::uint8_t> lock_{0};
  TensorSpec spec;  // shape and dtype of the values that are fed or held
  Device device;
  Value value;  // variable: the current value; placeholder: its default, if it has one. See set().
  std::atomic<std::uint64_t> draws{0};  // random source: number of draws with this seed so far
  std::atomic<std::uint64_t> seed{0};
  char* name = nullptr;
  Ref<Extra> constraint;  // stored for optimizers, never applied here
  Ref<Extra> handle;      // foreign tensors: the external backend's tensor
  /// Random source: the seeding of the global generator that the seed is from, 0 if the user gave the seed; and whether
  /// the draw had a value as soon as it was made.
  std::atomic<std::uint32_t> seeding{0};
  bool has_value = false;

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
  /// Swaps the value with `v`; call it under the lock. Code that writes into the bytes instead calls changed(): from
  /// the version a later backward pass knows whether the value that an op has read is still the current one.
  void set(Value& v) {
    std::swap(value, v);
    value.version = v.version;
    changed();
  }
  void changed() { ++value.version; }
  static void destroy(Cell* cell) noexcept;

 private:
  void wait() const;  // spins briefly, then yields: a commit in place holds the lock while it writes
};

/// Makes a leaf tensor.
Tensor make_leaf(Leaf kind, const TensorSpec& spec, Device device, Value value, Name name);

/// The library's access to private members of the public classes.
struct Access {
  static TensorImpl* impl(const Tensor& t) { return t.impl_; }
  static TensorDesc& desc(const Tensor& t) { return t.impl_->desc; }
  /// Takes over the caller's reference; the count is unchanged.
  static Tensor adopt(TensorImpl* impl) { return Tensor(impl); }
  static Tensor wrap(TensorDesc desc);

  static Scalar::Kind kind(const Scalar& s) { return s.kind_; }
  static std::int64_t int_value(const Scalar& s) { return s.int_; }
  static double float_value(const Scalar& s) { return s.float_; }
  static const void* pointer(const Scalar& s) { return s.pointer_; }
  static std::size_t count(const Scalar& s) { return s.count_; }
  /// The tensor that ArrayOf makes of another library's array; it may share that array's memory.
  static Tensor make_array(const Scalar& s) { return s.make_(s.pointer_); }
  static DType dtype(const Scalar& s) { return s.dtype_; }

  static Index::Kind kind(const Index& i) { return i.kind_; }
  static std::uint8_t has(const Index& i) { return i.has_; }
  static std::int64_t start(const Index& i) { return i.start_; }
  static std::int64_t stop(const Index& i) { return i.stop_; }
  static std::int64_t step(const Index& i) { return i.step_; }
  static const void* pointer(const Index& i) { return i.pointer_; }
  static std::string text(const Index& i) {
    return std::string(i.pointer_ ? static_cast<const char*>(i.pointer_) : "", i.stop_);
  }

  static bool lazy(const Branch& b);
  static const Operand& value(const Branch& b);
  static Tensor call(const Branch& b);
  static bool returns_number(const Branch& b);
  static Operand number(const Branch& b);
};

}  // namespace kassette
