// ops/sparse_index.cpp - the indices of a sparse tensor: checking them, and putting them in order.
#include "ops/sparse_index.h"

#include <algorithm>
#include <cstring>

#include "core/text.h"
#include "devices/cpu/threads.h"

namespace kassette {
namespace {

constexpr std::int64_t kGrain = 1 << 14;   // entries

std::string place_text(const std::int64_t* at, int rank) {
  std::string s = "(";
  for (int i = 0; i < rank; ++i) s += (i ? ", " : "") + std::to_string(at[i]);
  return s + (rank == 1 ? ",)" : ")");
}

}  // namespace

SparseIndex::SparseIndex(const char* what, Ref<Storage> memory, std::int64_t offset, std::int64_t count, const Spec& shape)
    : memory_(std::move(memory)),
      at_(reinterpret_cast<const std::int64_t*>(static_cast<const std::byte*>(memory_->data) + offset)),
      count_(count),
      shape_(shape) {
  const int rank = shape.rank;
  std::atomic<std::int64_t> wrong{count};
  std::atomic<bool> falls{false};
  parallel_for(count, kGrain, [&](std::int64_t begin, std::int64_t end) {
    bool fell = false;
    for (std::int64_t k = begin; k < end; ++k) {
      const std::int64_t* place = at_ + k * rank;
      bool inside = true;
      for (int i = 0; i < rank; ++i) inside &= static_cast<std::uint64_t>(place[i]) < static_cast<std::uint64_t>(shape.dims[i]);
      if (!inside) {   // the first of all is reported, whichever thread is first
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
    fail<ValueError>(what, ": entry ", k, " is at ", place_text(at(k), rank), ", outside of ", shape_text(shape));
  rising_ = !falls;
}

Ref<Storage> SparseIndex::own(const char* what, Ref<Storage> memory, std::int64_t offset, std::int64_t count, const Spec& shape) {
  std::unique_ptr<SparseIndex> index(new SparseIndex(what, std::move(memory), offset, count, shape));
  const std::int64_t* data = index->at_;
  Ref<Storage> storage = Storage::borrow(data, count * shape.rank * std::int64_t(sizeof *data), {release, index.get()});
  static_cast<void>(index.release());
  return storage;
}

void SparseIndex::release(void* index) { delete static_cast<SparseIndex*>(index); }

bool SparseIndex::is_for(const Body& indices, const Spec& shape) const {
  return shape_.same_shape(shape) && count_ == indices.dims[0] && at_ == reinterpret_cast<const std::int64_t*>(indices.data());
}

const SparseIndex& SparseIndex::behind(const char* what, const Body& indices, const Spec& shape, std::unique_ptr<SparseIndex>& made) {
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

/// Counts the entries of each line and places each behind those of its line that were listed before it.
SparseLines SparseIndex::sorted(int axis) const {
  const int other = 1 - axis;
  if (count_ > UINT32_MAX || shape_.dims[other] > UINT32_MAX)
    fail<ValueError>("dot: a sparse matrix of shape ", shape_text(shape_), " with ", count_, " entries; 2^32 is the most along an axis and of entries");
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
    // starts[r] runs through line r while it fills and ends where the next begins: shifted back by one afterwards.
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

}  // namespace kassette
