// ops/engine/origin.cpp - the table of origins.
#include "ops/engine/origin.h"

#include <deque>
#include <map>
#include <mutex>
#include <tuple>

#include "core/source_lines.h"
#include "ops/engine/error_attribution.h"
#include "ops/engine/op.h"

namespace kassette::ops {

constinit __thread Observed tls_observed;

namespace {

using Key = std::tuple<const char*, const void*, const char*>;
struct Origins {
  std::mutex mutex;
  std::map<Key, std::int32_t> codes;
  std::deque<Origin> list;
};
Origins& origins() {
  static auto* table = new Origins;  // never destroyed: programs refer to it as long as there are any
  return *table;
}

/// The code of an origin; `without` if there is no memory for it.
std::int32_t code_of(const Origin& origin, std::int32_t without) noexcept try {
  Origins& table = origins();
  const ObserverLock lock(table.mutex);
  const Key key(origin.function, origin.caller, origin.adjoint_of);
  if (const auto found = table.codes.find(key); found != table.codes.end()) return found->second;
  const auto next = kFirstOrigin + static_cast<std::int32_t>(table.list.size());
  table.list.push_back(origin);
  try {
    table.codes.emplace(key, next);
  } catch (...) {
    table.list.pop_back();
    throw;
  }
  return next;
} catch (...) {
  return without;
}

}  // namespace

Origin origin_of(std::int32_t code) noexcept {
  if (code < kFirstOrigin) return {.function = literal_at(code)};
  Origins& table = origins();
  const ObserverLock lock(table.mutex);
  const auto i = static_cast<std::size_t>(code - kFirstOrigin);
  return i < table.list.size() ? table.list[i] : Origin();
}

std::int32_t origin_here(const Context& c) noexcept {
  Origin now = origin_of(c.function);
  if (now.caller) return c.function;  // an instruction that is put on the tape again
  if (!tls_observed.origin && tls_observed.adjoint) tls_observed.origin = origin_of_adjoint(*tls_observed.adjoint);
  const Origin around = origin_of(tls_observed.origin);
  now.caller = around.caller ? around.caller : caller_address();
  now.adjoint_of = around.adjoint_of;
  return code_of(now, c.function);
}

std::int32_t origin_of_adjoint(const Node& node) noexcept {
  Origin of = origin_of(node.function);
  if (!of.caller) of.caller = caller_address();
  if (!of.adjoint_of) of.adjoint_of = node.op->name;
  return code_of(of, node.function);
}

}  // namespace kassette::ops
