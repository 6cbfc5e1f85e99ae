// include/kassette/kept.h - callables that are kept beyond the call they were given to.
#ifndef KASSETTE_KEPT_H
#define KASSETTE_KEPT_H
#include <iosfwd>
#include <utility>

#include <kassette/dtype.h>

namespace kassette {

/// The counted copy of a callable that a KeptCallable shares with its copies.
class KASSETTE_API KeptObject {
 public:
  KeptObject(const KeptObject& other) noexcept;
  KeptObject& operator=(const KeptObject& other) noexcept;
  ~KeptObject();
  bool defined() const { return box_ != nullptr; }
  /// Whether both are copies of the same object.
  friend KASSETTE_API bool operator==(const KeptObject& a, const KeptObject& b);
  friend bool operator!=(const KeptObject& a, const KeptObject& b) { return !(a == b); }
  friend KASSETTE_API std::ostream& operator<<(std::ostream& os, const KeptObject& f);

 protected:
  KeptObject() noexcept : box_(nullptr) {}
  KeptObject(void* object, void (*destroy)(void*));
  /// The copy of the callable. Throws ValueError if there is none.
  void* object() const;

 private:
  struct Box;
  Box* box_;
};

/// A callable of the given signature, copied and kept, or None. Copies share it; an object whose bytes are all 0 is
/// None.
template <class Signature>
class KeptCallable;
template <class R, class... A>
class KeptCallable<R(A...)> : public KeptObject {
 public:
  KeptCallable() noexcept : call_(nullptr) {}
  KeptCallable(NoneType) noexcept : call_(nullptr) {}
  template <class F, class = decltype(R(std::declval<F&>()(std::declval<A>()...)))>
  KeptCallable(F f)
      : KeptObject(new F(static_cast<F&&>(f)), [](void* o) { delete static_cast<F*>(o); }),
        call_([](void* o, A... a) -> R { return (*static_cast<F*>(o))(a...); }) {}
  R operator()(A... a) const {
    void* o = object();
    return call_(o, a...);
  }

 private:
  R (*call_)(void*, A...);
};

}  // namespace kassette

#endif  // KASSETTE_KEPT_H
