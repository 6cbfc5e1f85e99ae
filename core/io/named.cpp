// core/io/named.cpp - collections of tensors with names.
#include <kassette/io.h>

#include <ostream>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/print/printable.h"
#include "core/text.h"

namespace kassette {

struct NamedTensors::Impl {
  std::vector<NamedTensor> items;  // their names are the keys of `places`
  std::unordered_map<std::string, std::size_t> places;
  std::vector<std::pair<std::string, std::string>> texts;
  std::unordered_map<std::string, std::size_t> text_places;

  Impl() = default;
  Impl(const Impl& other) : texts(other.texts), text_places(other.text_places) {
    for (const NamedTensor& item : other.items) set(item.name, item.tensor);
  }
  Impl& operator=(const Impl&) = delete;
  void set(const char* name, const Tensor& tensor) {
    if (items.size() == items.capacity())
      items.reserve(2 * items.size() + 1);  // nothing fails once the name has a place
    auto [at, added] = places.try_emplace(name, items.size());
    if (added) items.push_back({at->first.c_str(), tensor});
    else items[at->second].tensor = tensor;
  }
};

namespace {

std::string text_of(Name name) {
  if (!name.given()) fail<ValueError>({"NamedTensors"}, "None is not a name");
  return string_of(name);
}

}  // namespace

NamedTensors::Impl& NamedTensors::make() {
  if (!impl_) impl_ = new Impl;
  return *impl_;
}
NamedTensors::NamedTensors(std::initializer_list<Item> items) : impl_(nullptr) {
  NamedTensors made;
  for (const Item& item : items) {
    if (made.contains(item.name))
      fail<ValueError>({"NamedTensors"}, "the name '", string_of(item.name), "' is given twice");
    made.set(item.name, item.tensor);
  }
  std::swap(impl_, made.impl_);
}
NamedTensors::NamedTensors(const Tensors& list) : impl_(nullptr) {
  NamedTensors made;
  std::int64_t i = 0;
  for (const Tensor& t : list) made.set(text("arr_", i++), t);
  std::swap(impl_, made.impl_);
}
NamedTensors::NamedTensors(const NamedTensors& other) : impl_(other.impl_ ? new Impl(*other.impl_) : nullptr) {}
NamedTensors::~NamedTensors() { delete impl_; }

std::int64_t NamedTensors::size() const { return impl_ ? static_cast<std::int64_t>(impl_->items.size()) : 0; }
const NamedTensor* NamedTensors::begin() const& { return impl_ ? impl_->items.data() : nullptr; }
const NamedTensor* NamedTensors::end() const& { return begin() + size(); }
bool NamedTensors::contains(Name name) const { return impl_ && impl_->places.count(text_of(name)); }
Tensor NamedTensors::operator[](Name name) && { return static_cast<const NamedTensors&>(*this)[name]; }
const Tensor& NamedTensors::operator[](Name name) const& {
  if (contains(name)) return impl_->items[impl_->places.at(string_of(name))].tensor;
  std::string there;
  for (const NamedTensor& item : *this) {
    if (there.size() > 200) {
      there += ", ...";
      break;
    }
    there += text(there.empty() ? "" : ", ", "'", excerpt(item.name), "'");
  }
  fail<ValueError>({"NamedTensors"}, "no tensor is called '", excerpt(text_of(name)), "'", kExpected, "there ",
                   size() == 1 ? "is " : "are ", there.empty() ? "none" : there);
}
void NamedTensors::set(Name name, const Tensor& tensor) {
  if (!tensor.defined()) fail<ValueError>({"NamedTensors"}, "'", text_of(name), "' is ", kEmptyTensor);
  make().set(text_of(name).c_str(), tensor);
}
Tensors NamedTensors::tensors() const {
  Tensors list;
  list.reserve(size());
  for (const NamedTensor& item : *this) list.push_back(item.tensor);
  return list;
}

const char* NamedTensors::metadata(Name key) const& {
  if (!impl_) return nullptr;
  auto at = impl_->text_places.find(text_of(key));
  return at == impl_->text_places.end() ? nullptr : impl_->texts[at->second].second.c_str();
}
void NamedTensors::set_metadata(Name key, Name value) {
  const std::string k = text_of(key), v = text_of(value);
  Impl& impl = make();
  if (auto at = impl.text_places.find(k); at != impl.text_places.end()) {
    impl.texts[at->second].second = v;
    return;
  }
  impl.texts.emplace_back(k, v);
  try {
    impl.text_places.emplace(k, impl.texts.size() - 1);
  } catch (...) {
    impl.texts.pop_back();
    throw;
  }
}
std::int64_t NamedTensors::metadata_size() const { return impl_ ? static_cast<std::int64_t>(impl_->texts.size()) : 0; }
const char* NamedTensors::metadata_key(std::int64_t i) const& {
  if (i < 0 || i >= metadata_size()) fail<ValueError>({"metadata_key"}, i, " of ", metadata_size());
  return impl_->texts[i].first.c_str();
}

// ---- texts and columns ----------------------------------------------------------------------------------------------

struct Texts::Impl {
  std::vector<std::string> items;
};
Texts::Texts(const Names& list) : impl_(new Impl) {
  Texts made;
  std::swap(made.impl_, impl_);  // freed if an item is refused
  for (std::int64_t i = 0; i < list.size(); ++i) made.push_back(list[i]);
  std::swap(made.impl_, impl_);
}
Texts::Texts(const Texts& other) : impl_(other.impl_ ? new Impl(*other.impl_) : nullptr) {}
Texts::~Texts() { delete impl_; }
std::int64_t Texts::size() const { return impl_ ? static_cast<std::int64_t>(impl_->items.size()) : 0; }
const char* Texts::operator[](std::int64_t i) const {
  if (i < 0 || i >= size()) fail<ValueError>({"Texts"}, i, " of ", size());
  return impl_->items[static_cast<std::size_t>(i)].c_str();
}
void Texts::push_back(Name text) {
  if (!text.given()) fail<ValueError>({"Texts"}, "None is not a text");
  std::string copy = string_of(text);
  if (!impl_) impl_ = new Impl;
  impl_->items.push_back(std::move(copy));
}

Columns::Columns(std::initializer_list<std::int64_t> numbers) : list_(std::initializer_list<Name>{}), numbers_(true) {
  for (std::int64_t n : numbers) push_back(n);
}
void Columns::push_back(std::int64_t number) { list_.push_back(std::to_string(number)); }

std::ostream& operator<<(std::ostream& os, const NamedTensors& list) {
  std::string out = "{";
  const char* separator = "";
  for (const NamedTensor& item : list) {
    out += text(separator, printable(item.name), ": ", item.tensor.shape(), ' ', item.tensor.dtype());
    separator = ", ";
  }
  return os << out + '}';
}

}  // namespace kassette
