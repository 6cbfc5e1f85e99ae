// core/impl.cpp - allocation and destruction of tensors, nodes and cells.
#include "core/impl.h"

#include <sched.h>

#include <cstdlib>
#include <cstring>

#include <kassette/api.h>

#include "core/cpu_pause.h"
#include "core/text.h"

namespace kassette {

void TensorImpl::destroy(TensorImpl* impl) noexcept {
  Context& c = context();
  Ref<Node>::drop(impl->desc.node.get());  // as ~TensorDesc, without looking up the context again
  Storage::drop(c, impl->desc.storage.get());
  c.live_tensors.add(-1);
  pool_free(c, impl, sizeof(TensorImpl));
}

Tensor Access::wrap(TensorDesc desc) {
  TensorImpl* impl = TensorImpl::make();
  impl->desc = std::move(desc);
  return adopt(impl);
}

static_assert(sizeof(Node) == 96, "three pooled blocks a recorded op, and no more bytes than that takes");

Node* Node::make(const ops::OpDef* op, std::uint32_t n_in, std::uint16_t n_out, std::uint16_t n_saved_out) {
  Node* n = make_raw(context(), op, Attrs(), n_in, n_out, n_saved_out);
  for (TensorDesc *b = n->in(), *end = b + n_in + n_saved_out; b != end; ++b) new (b) TensorDesc;
  return n;
}
namespace {

void queue(Context& c, Node* n) {
  n->next_dying = c.dying;
  c.dying = n;
}

void free_node(Context& c, Node* n) {
  std::size_t bytes = n->bytes();
  c.live_nodes.add(-1);
  if (n->saved) c.saved_bytes.add(-n->saved);
  for (TensorDesc *b = n->in(), *end = b + n->n_in + n->n_saved_out; b != end; ++b) {
    Node* maker = b->node.get();  // as ~TensorDesc, without a call for each descriptor
    if (maker && Ref<Node>::drop_is_last(maker)) queue(c, maker);
    Storage::drop(c, b->storage.get());
  }
  n->~Node();
  if (bytes <= kMaxPooled) pool_free(c, n, bytes);
  else ::operator delete(n);
}

}  // namespace

void Node::destroy(Node* node) noexcept {
  Context& c = context();
  if (c.destroying) {
    queue(c, node);
    return;
  }
  c.destroying = true;
  for (;;) {
    free_node(c, node);
    node = c.dying;
    if (!node) break;
    c.dying = node->next_dying;
  }
  c.destroying = false;
}

void* Extra::operator new(std::size_t bytes) {
  return bytes <= kMaxPooled ? pool_allocate(context(), bytes) : ::operator new(bytes);
}
void Extra::operator delete(void* p, std::size_t bytes) noexcept {
  if (bytes <= kMaxPooled) pool_free(context(), p, bytes);
  else ::operator delete(p);
}

void Cell::wait() const {
  for (int spins = 0; lock_.load(std::memory_order_relaxed); ++spins)
    if (spins < 1000) cpu_pause();
    else sched_yield();
}
void Cell::destroy(Cell* cell) noexcept {
  std::free(cell->name);
  delete cell;
}

Tensor make_leaf(Leaf kind, const TensorSpec& spec, Device device, Value value, Name name) {
  check_text(name);
  auto cell = Ref<Cell>::adopt(new Cell);
  cell->kind = kind;
  cell->spec.set(spec);
  cell->device = device;
  cell->value = std::move(value);
  if (name.given()) cell->name = strndup(name.data(), name.size());
  Node* node = Node::make(nullptr, 0, 1, 0);
  node->cell = std::move(cell);
  node->seq = ++context().clock;
  TensorDesc b;
  b.set(spec);
  b.device = device;
  b.flags = static_cast<std::uint8_t>(kLeaf | (kind == Leaf::placeholder ? kSymbolic : 0));
  b.node = Ref<Node>::adopt(node);
  return Access::wrap(std::move(b));
}

bool Access::lazy(const Branch& b) { return b.lazy_; }
const Operand& Access::value(const Branch& b) { return b.value_; }
Tensor Access::call(const Branch& b) { return b.f_(); }
bool Access::returns_number(const Branch& b) { return b.returns_number_; }
Operand Access::number(const Branch& b) { return b.number_(); }
Tensor Branch::nothing() { return Tensor(); }

}  // namespace kassette
