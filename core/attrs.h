// core/attrs.h - the attributes of an op: a small typed struct, and a ref-counted object for whatever does not fit in
// one.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include <kassette/dtype.h>

#include "core/ref.h"

namespace kassette {

namespace attrs {

/// A 16-bit hash of `attrs_name`, which tells the structs apart. Never 0, the tag of default-constructed Attrs.
constexpr std::uint16_t tag_of(const char* name) {
  std::uint32_t hash = 2166136261u;
  for (; *name; ++name) hash = (hash ^ static_cast<unsigned char>(*name)) * 16777619u;
  return static_cast<std::uint16_t>((hash ^ hash >> 16) | 1);
}

}  // namespace attrs

/// An immutable, ref-counted attribute that does not fit in a few numbers: a list, the body of a loop, tensors to keep
/// alive.
struct Extra {
  std::atomic<std::int32_t> count{1};
  std::uint16_t tag = 0;  // of the class that as() returns
  virtual ~Extra() = default;
  /// This object as a T; traps if it is of another class.
  template <class T>
  __attribute__((always_inline)) T& as() {
    constexpr std::uint16_t expected = attrs::tag_of(T::attrs_name);
    if (tag != expected) __builtin_trap();
    return static_cast<T&>(*this);
  }
  static void destroy(Extra* e) noexcept { delete e; }
  static void* operator new(std::size_t bytes);  // pooled: one is made with every gradients()
  static void operator delete(void* p, std::size_t bytes) noexcept;
};
/// The base of a class T with an `attrs_name` that ops read by attrs.extra->as<T>().
template <class T>
struct TaggedExtra : Extra {
  TaggedExtra() { tag = attrs::tag_of(T::attrs_name); }
};

namespace attrs {

/// Converts to any type: used to find out how many fields an aggregate has.
struct Any {
  template <class T>
  requires(!std::is_same_v<T, Name> && !std::is_same_v<T, NoneType>)  // DType and Device are made of both: ambiguous
      constexpr
      operator T() const noexcept;
};
template <class T, class... Values>
concept InitialisedBy = requires {
  T{Values()...};
};

/// Calls visit(field) for each field of an aggregate with at most five fields.
template <class T, class F>
__attribute__((always_inline)) constexpr void each_field(T& of, F visit) {
  using S = std::remove_const_t<T>;
  static_assert(!InitialisedBy<S, Any, Any, Any, Any, Any, Any>, "at most five fields; group them in a struct");
  if constexpr (InitialisedBy<S, Any, Any, Any, Any, Any>) {
    auto& [a, b, c, d, e] = of;
    visit(a), visit(b), visit(c), visit(d), visit(e);
  } else if constexpr (InitialisedBy<S, Any, Any, Any, Any>) {
    auto& [a, b, c, d] = of;
    visit(a), visit(b), visit(c), visit(d);
  } else if constexpr (InitialisedBy<S, Any, Any, Any>) {
    auto& [a, b, c] = of;
    visit(a), visit(b), visit(c);
  } else if constexpr (InitialisedBy<S, Any, Any>) {
    auto& [a, b] = of;
    visit(a), visit(b);
  } else {
    auto& [a] = of;
    visit(a);
  }
}

}  // namespace attrs

/// The type-erased arguments of an op other than its inputs. Attributes are an aggregate of numbers, with a name:
///
///     struct GatherAttrs {
///       static constexpr const char* attrs_name = "gather";
///       std::int64_t axis;
///       Wrap wrap;
///     };
///
/// It converts to Attrs. Kernels, rules and adjoints read it by attrs.as<GatherAttrs>(), which traps if the Attrs hold
/// another struct. Default-constructed Attrs can be read as any struct: all fields are 0.
class Attrs {
  static constexpr std::ptrdiff_t kBytes = 32, kTag = kBytes - 2;  // the tag comes last, after the fields

 public:
  Attrs() = default;
  explicit Attrs(Ref<Extra> e) : extra(std::move(e)) {}
  template <class T, std::size_t = sizeof(T::attrs_name)>
  __attribute__((always_inline)) Attrs(const T& t, Ref<Extra> e = {}) : extra(std::move(e)) {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= alignof(Attrs));
    // Field by field: the tag may lie in the padding at the end of a struct.
    attrs::each_field(
        t, [&]<class F>(const F& field) __attribute__((always_inline)) {
          static_assert(std::has_unique_object_representations_v<F> || std::is_floating_point_v<F>,
                        "a field with padding");
          const std::ptrdiff_t at = reinterpret_cast<const std::byte*>(&field) - reinterpret_cast<const std::byte*>(&t);
          if (at + static_cast<std::ptrdiff_t>(sizeof field) > kTag) __builtin_trap();
          std::memcpy(bytes_ + at, &field, sizeof field);
        });
    constexpr std::uint16_t tag = attrs::tag_of(T::attrs_name);
    std::memcpy(bytes_ + kTag, &tag, sizeof tag);
  }
  template <class T>
  __attribute__((always_inline)) const T& as() const {
    static_assert(sizeof(T) <= static_cast<std::size_t>(kBytes));
    constexpr std::uint16_t tag = attrs::tag_of(T::attrs_name);
    std::uint16_t have;
    std::memcpy(&have, bytes_ + kTag, sizeof have);
    if (have != 0 && have != tag) __builtin_trap();  // the attributes of another op
    return *reinterpret_cast<const T*>(bytes_);
  }
  /// The bytes of the fields, 30 at most, for code that keeps a copy of them.
  const std::byte* fields() const { return bytes_; }

 private:
  alignas(8) std::byte bytes_[kBytes] = {};

 public:
  Ref<Extra> extra;
};
static_assert(sizeof(Attrs) == 40, "nodes hold attributes by value");

}  // namespace kassette
