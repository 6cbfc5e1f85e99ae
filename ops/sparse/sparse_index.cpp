// ops/sparse/sparse_index.cpp - the indices of a sparse tensor: checking and sorting them.
#include "ops/sparse/sparse_index.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "core/text.h"
#include "devices/cpu/threads.h"
#include "devices/plugin.h"

namespace kassette::ops {
namespace {

constexpr std::int64_t kGrain = 1 << 14;  // entries

std::string place_text(const std::int64_t* at, int rank) {
  std::string s = "(";
  for (int i = 0; i < rank; ++i) s += (i ? ", " : "") + std::to_string(at[i]);
  return s + (rank == 1 ? ",)" : ")");
}

}  // namespace

SparseIndex::SparseIndex(const char* what, Ref<Storage> memory, std::int64_t offset, std::int64_t count,
                         const TensorSpec& shape)
    : memory_(std::move(memory)),
      at_(reinterpret_cast<const std::int64_t*>(static_cast<const std::byte*>(memory_->data) + offset)), count_(count),
      shape_(shape) {
  const int rank = shape.rank;
  std::atomic<std::int64_t> wrong{count};
  std::atomic<bool> falls{false};
  devices::parallel_for(count, kGrain, [&](std::int64_t begin, std::int64_t end) {
    bool fell = false;
    for (std::int64_t k = begin; k < end; ++k) {
      const std::int64_t* place = at_ + k * rank;
      bool inside = true;
      for (int i = 0; i < rank; ++i)
        inside &= static_cast<std::uint64_t>(place[i]) < static_cast<std::uint64_t>(shape.dims[i]);
      if (!inside) {  // the first wrong entry is reported, whichever thread finds one first
        std::int64_t seen = wrong.load();
        while (k < seen && !wrong.compare_exchange_weak(seen, k)) {
        }
        return;
      }
      fell |= k > 0 && rank > 0 && place[0] < place[-rank];
    }
    if (fell) falls = true;
  });
  if (std::int64_t k = wrong; k < count)
    fail<ValueError>({what, "indices"}, "of entry ", k, " are ", place_text(at(k), rank), ", outside of ",
                     shape_text(shape));
  rising_ = !falls;
}

Ref<Storage> SparseIndex::own(const char* what, Ref<Storage> memory, std::int64_t offset, std::int64_t count,
                              const TensorSpec& shape) {
  std::unique_ptr<SparseIndex> index(new SparseIndex(what, std::move(memory), offset, count, shape));
  const std::int64_t* data = index->at_;
  Ref<Storage> storage = Storage::borrow(data, count * shape.rank * std::int64_t(sizeof *data), {release, index.get()});
  static_cast<void>(index.release());
  return storage;
}

void SparseIndex::release(void* index) { delete static_cast<SparseIndex*>(index); }

bool SparseIndex::is_for(const TensorDesc& indices, const TensorSpec& shape) const {
  return shape_.same_shape(shape) && count_ == indices.dims[0] &&
         at_ == reinterpret_cast<const std::int64_t*>(indices.data());
}

const SparseIndex& SparseIndex::owner_of(const char* what, const TensorDesc& indices, const TensorSpec& shape,
                                         std::unique_ptr<SparseIndex>& made) {
  const Storage& s = *indices.storage;
  if (s.kind == Storage::kBorrowed && s.owner->release == release) {
    const auto* index = static_cast<const SparseIndex*>(s.owner->state);
    if (index->is_for(indices, shape)) return *index;
  }
  made.reset(new SparseIndex(what, indices.storage, indices.offset, indices.dims[0], shape));
  return *made;
}

const SparseLines& SparseIndex::lines(int axis) const {
  if (const SparseLines* made = lines_[axis].load(std::memory_order_acquire)) return *made;
  std::lock_guard<std::mutex> lock(mutex_);
  if (!made_[axis]) {
    made_[axis] = std::make_unique<SparseLines>(sorted(axis));
    lines_[axis].store(made_[axis].get(), std::memory_order_release);
  }
  return *made_[axis];
}

const SparseElements& SparseIndex::elements() const {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!elements_) elements_ = std::make_unique<SparseElements>(grouped());
  return *elements_;
}

SparseElements SparseIndex::grouped() const {
  if (count_ > UINT32_MAX)
    fail<ValueError>({"to_dense"}, "a sparse tensor of ", count_, " entries", kExpected,
                     "there must be fewer than 2^32");
  std::vector<std::int64_t> element(count_);
  std::vector<std::uint32_t> order(element.size());
  for (std::int64_t k = 0; k < count_; ++k) element[k] = this->element(k);
  std::iota(order.begin(), order.end(), 0u);
  if (!std::is_sorted(element.begin(), element.end()))
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return element[a] < element[b]; });
  SparseElements e;
  e.n = 0;
  auto begins = [&](std::size_t i) { return i == 0 || element[order[i]] != element[order[i - 1]]; };
  for (std::size_t i = 0; i < order.size(); ++i) e.n += begins(i);
  e.memory = Storage::allocate((2 * e.n + 1) * 8 + count_ * 4, cpu);
  auto *starts = static_cast<std::int64_t*>(e.memory->data), *elements = starts + e.n + 1;
  auto* to = reinterpret_cast<std::uint32_t*>(elements + e.n);
  std::copy(order.begin(), order.end(), to);
  e.starts = starts;
  e.elements = elements;
  e.order = to;
  for (std::size_t i = 0; i < order.size(); ++i)
    if (begins(i)) {
      *starts++ = static_cast<std::int64_t>(i);
      *elements++ = element[order[i]];
    }
  *starts = count_;
  return e;
}

SparseView SparseIndex::on(Device device, SparseView::Part part) const {
  SparseView v{};
  v.count = count_;
  const void* from = at_;
  std::int64_t bytes = count_ * shape_.rank * std::int64_t(sizeof *at_);
  if (part == SparseView::kElements) {
    const SparseElements& e = elements();
    v.n = e.n;
    v.starts = e.starts;
    v.order = e.order;
    v.elements = e.elements;
    from = e.memory->data;
    bytes = e.memory->bytes;
  } else if (part != SparseView::kPlaces) {
    const SparseLines& l = lines(part == SparseView::kColumns);
    v.n = l.n;
    v.starts = l.starts;
    v.others = l.others;
    v.order = l.order;
    from = l.memory->data;
    bytes = l.memory->bytes;
  } else {
    v.places = at_;
  }
  if (device == cpu || bytes == 0) return v;
  std::lock_guard<std::mutex> lock(mutex_);
  auto copy =
      std::find_if(copies_.begin(), copies_.end(), [&](const Copy& c) { return c.device == device && c.part == part; });
  if (copy == copies_.end()) {
    const devices::NotCaptured now(devices::cuda_device_api(device));
    Ref<Storage> memory = Storage::allocate(bytes, device);
    device_api(device).copy_from_host(memory->data, from, bytes);
    copies_.push_back({device, part, std::move(memory)});
    copy = copies_.end() - 1;
  }
  auto moved = [&](auto*& p) {
    if (!p) return;
    std::ptrdiff_t offset = reinterpret_cast<const std::byte*>(p) - static_cast<const std::byte*>(from);
    p = reinterpret_cast<std::remove_reference_t<decltype(p)>>(static_cast<const std::byte*>(copy->memory->data) +
                                                               offset);
  };
  moved(v.places);
  moved(v.starts);
  moved(v.others);
  moved(v.order);
  moved(v.elements);
  return v;
}

/// A counting sort by line. It is stable: the entries of a line keep their order.
SparseLines SparseIndex::sorted(int axis) const {
  const int other = 1 - axis;
  if (count_ > UINT32_MAX || shape_.dims[other] > UINT32_MAX)
    fail<ValueError>({"dot"}, "a sparse matrix of shape ", shape_text(shape_), " with ", count_, " entries", kExpected,
                     "there must be fewer than 2^32 along an axis, and fewer than 2^32 entries");
  SparseLines l;
  l.n = shape_.dims[axis];
  bool listed = axis == 0 && rising_;
  std::int64_t starts_bytes = (l.n + 1) * 8, each = count_ * 4;
  l.memory = Storage::allocate(starts_bytes + each * (listed ? 1 : 2), cpu);
  auto* starts = static_cast<std::int64_t*>(l.memory->data);
  auto* others = reinterpret_cast<std::uint32_t*>(starts + l.n + 1);
  std::uint32_t* order = listed ? nullptr : others + count_;
  std::memset(starts, 0, static_cast<std::size_t>(starts_bytes));
  for (std::int64_t k = 0; k < count_; ++k) ++starts[at(k)[axis] + 1];
  for (std::int64_t r = 0; r < l.n; ++r) starts[r + 1] += starts[r];
  if (listed) {
    for (std::int64_t k = 0; k < count_; ++k) others[k] = static_cast<std::uint32_t>(at(k)[other]);
  } else {
    // starts[r] advances while line r is filled, and ends at the beginning of line r + 1: shifting by one restores it.
    for (std::int64_t k = 0; k < count_; ++k) {
      std::int64_t to = starts[at(k)[axis]]++;
      others[to] = static_cast<std::uint32_t>(at(k)[other]);
      order[to] = static_cast<std::uint32_t>(k);
    }
    std::memmove(starts + 1, starts, static_cast<std::size_t>(l.n) * 8);
    starts[0] = 0;
  }
  l.starts = starts;
  l.others = others;
  l.order = order;
  return l;
}

}  // namespace kassette::ops
