// nn_backend/prompt/front_end.cpp - hands values to the front end, a notebook.
#include "nn_backend/prompt/front_end.h"

#include <atomic>

namespace kassette::repl {
namespace {

std::atomic<FrontEnd> front_end{nullptr};
std::atomic<std::int64_t> last_display{0};

struct At {
  Shown::Kind kind;
  std::int64_t id;
};
constinit __thread At at = {Shown::value, 0};

}  // namespace

void set_front_end(FrontEnd f) noexcept { front_end = f; }
bool has_front_end() noexcept { return front_end.load() != nullptr; }
std::int64_t fresh_display() noexcept { return ++last_display; }

void Forms::add(std::string mime, std::string data) {
  for (auto& [name, old] : forms_)
    if (name == mime) {
      old = std::move(data);
      return;
    }
  forms_.emplace_back(std::move(mime), std::move(data));
}

void Forms::deliver(std::string text) const { deliver(std::move(text), at.kind, at.id); }
void Forms::deliver(std::string text, Shown::Kind kind, std::int64_t id) const {
  std::vector<Form> forms = {{"text/plain", text.data(), static_cast<std::int64_t>(text.size())}};
  for (const auto& [mime, data] : forms_) {
    const Form form = {mime.c_str(), data.data(), static_cast<std::int64_t>(data.size())};
    if (mime == "text/plain") forms[0] = form;
    else forms.push_back(form);
  }
  if (FrontEnd f = front_end) f({kind, id, forms.data(), static_cast<int>(forms.size())});
}

void clear_output() {
  if (FrontEnd f = front_end) f({Shown::clear, 0, nullptr, 0});
}

Live::Live() noexcept : id_(fresh_display()) {}
Shown::Kind Live::next() noexcept { return std::exchange(begun_, true) ? Shown::update : Shown::display; }

namespace detail {
Displaying::Displaying(Shown::Kind kind, std::int64_t id) noexcept : kind_(at.kind), id_(at.id) { at = {kind, id}; }
Displaying::~Displaying() { at = {kind_, id_}; }
}  // namespace detail

}  // namespace kassette::repl
