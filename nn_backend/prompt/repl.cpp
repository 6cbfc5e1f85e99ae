// nn_backend/prompt/repl.cpp - how a prompt prints values.
#include <kassette/repl.h>

#include <atomic>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

#include <kassette/distributed.h>
#include <kassette/external_backend.h>
#include <kassette/io.h>
#include <kassette/profile.h>
#include <kassette/testing.h>

#include "core/check_interrupt.h"
#include "core/context.h"
#include "core/print/decimal.h"
#include "core/half.h"
#include "core/source_lines.h"
#include "core/text.h"
#include "devices/cpu/threads.h"
#include "nn_backend/prompt/front_end.h"
#include "ops/engine/origin.h"

namespace kassette {
namespace repl {
namespace {

void put_line(std::string text) {
  text += '\n';
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

std::string quoted(const char* text, std::size_t size, char mark) {
  std::string out(1, mark);
  for (std::size_t i = 0; i < size; ++i) {
    char c = text[i];
    if (c == mark || c == '\\') out += '\\';
    if (c == '\n') out += "\\n";
    else if (c == '\t') out += "\\t";
    else if (c == '\r') out += "\\r";
    else if (static_cast<unsigned char>(c) < 32 || c == 127) {
      char code[8];
      std::snprintf(code, sizeof code, "\\x%02x", static_cast<unsigned>(static_cast<unsigned char>(c)));
      out += code;
    } else {
      out += c;
    }
  }
  return out += mark;
}

std::string text_of(NoneType) { return "None"; }
std::string text_of(bool v) { return v ? "true" : "false"; }
std::string text_of(char v) { return quoted(&v, 1, '\''); }
std::string text_of(Half v) { return scalar_text(to_float(v), float16); }
std::string text_of(BFloat16 v) { return scalar_text(to_float(v), bfloat16); }
std::string text_of(float v) { return scalar_text(static_cast<double>(v), float32); }
std::string text_of(double v) { return scalar_text(v, float64); }
std::string text_of(long double v) {
  char digits[64];
  auto end = std::to_chars(digits, digits + sizeof digits, v).ptr;
  return std::string(digits, end);
}
std::string text_of(const char* v) { return v ? quoted(v, std::strlen(v), '"') : "nullptr"; }
std::string text_of(std::nullptr_t) { return "nullptr"; }
template <class T>
requires std::is_integral_v<T> std::string text_of(T v) { return std::to_string(v); }
template <class T>
requires requires(std::ostream& os, const T& v) {
  os << v;
} &&(!std::is_arithmetic_v<T>)std::string text_of(const T& v) {
  return text(v);
}

template <class T>
void put(const T& v, std::ostream* inside) {
  std::string words = text_of(v);
  if (inside) {
    *inside << words;
    return;
  }
  if (!has_front_end()) return put_line(std::move(words));
  Forms forms;
  add_rich(v, forms);
  forms.deliver(std::move(words));
}

}  // namespace

void show(const Tensor& value, std::ostream* inside) { put(value, inside); }
void show(const Tensors& value, std::ostream* inside) { put(value, inside); }
void show(const NamedTensors& value, std::ostream* inside) { put(value, inside); }
void show(const Shape& value, std::ostream* inside) { put(value, inside); }
void show(Extent value, std::ostream* inside) { put(value, inside); }
void show(DType value, std::ostream* inside) { put(value, inside); }
void show(Device value, std::ostream* inside) { put(value, inside); }
void show(NoneType value, std::ostream* inside) { put(value, inside); }
void show(Half value, std::ostream* inside) { put(value, inside); }
void show(BFloat16 value, std::ostream* inside) { put(value, inside); }
void show(const Text& value, std::ostream* inside) { put(value, inside); }
void show(const PrintOptions& value, std::ostream* inside) { put(value, inside); }
void show(const KeptObject& value, std::ostream* inside) { put(value, inside); }
void show(const MemoryStats& value, std::ostream* inside) { put(value, inside); }
void show(const Description& value, std::ostream* inside) { put(value, inside); }
void show(const MemoryReport& value, std::ostream* inside) { put(value, inside); }
void show(const Picture& value, std::ostream* inside) {
  if (!inside && !has_front_end() && terminal_shows_png())
    if (const std::string png = png_of(value); !png.empty()) return write_to_terminal(png);
  put(value, inside);
}
void show(const Profile& value, std::ostream* inside) { put(value, inside); }
void show(const Drawing& value, std::ostream* inside) { put(value, inside); }
void show(const Timing& value, std::ostream* inside) { put(value, inside); }
void show(const Function& value, std::ostream* inside) { put(value, inside); }
void show(const distributed::World& value, std::ostream* inside) { put(value, inside); }
void show(const backend::Step& value, std::ostream* inside) { put(value, inside); }
void show(const backend::RnnResult& value, std::ostream* inside) { put(value, inside); }
void show(const backend::NormalizedBatch& value, std::ostream* inside) { put(value, inside); }
void show(const backend::CtcDecoded& value, std::ostream* inside) { put(value, inside); }
void show(const backend::SparseParts& value, std::ostream* inside) { put(value, inside); }
void show(const testing::Comparison& value, std::ostream* inside) { put(value, inside); }
void show(const external::Value& value, std::ostream* inside) { put(value, inside); }
void show(bool value, std::ostream* inside) { put(value, inside); }
void show(char value, std::ostream* inside) { put(value, inside); }
void show(signed char value, std::ostream* inside) { put(value, inside); }
void show(unsigned char value, std::ostream* inside) { put(value, inside); }
void show(short value, std::ostream* inside) { put(value, inside); }
void show(unsigned short value, std::ostream* inside) { put(value, inside); }
void show(int value, std::ostream* inside) { put(value, inside); }
void show(unsigned value, std::ostream* inside) { put(value, inside); }
void show(long value, std::ostream* inside) { put(value, inside); }
void show(unsigned long value, std::ostream* inside) { put(value, inside); }
void show(long long value, std::ostream* inside) { put(value, inside); }
void show(unsigned long long value, std::ostream* inside) { put(value, inside); }
void show(float value, std::ostream* inside) { put(value, inside); }
void show(double value, std::ostream* inside) { put(value, inside); }
void show(long double value, std::ostream* inside) { put(value, inside); }
void show(const char* value, std::ostream* inside) { put(value, inside); }
void show(std::nullptr_t value, std::ostream* inside) { put(value, inside); }

namespace detail {
namespace {
void* kept = nullptr;  // destroyed by whoever ends the prompt: its code may be gone when the library is unloaded
void (*destroy_kept)(void*) = nullptr;
}  // namespace

void keep_last(void* value, void (*destroy)(void*)) {
  void* before = std::exchange(kept, value);
  auto* destroy_before = std::exchange(destroy_kept, destroy);
  if (before) destroy_before(before);
}
void* last_value() noexcept { return kept; }

namespace {
template <class T>
T* show_and_keep_copy(const T& value) {
  show(value);
  keep_last(new T(value), [](void* copy) { delete static_cast<T*>(copy); });
  return nullptr;
}
}  // namespace

Tensor* show_and_keep(const Tensor& value) { return show_and_keep_copy(value); }
Shape* show_and_keep(const Shape& value) { return show_and_keep_copy(value); }
bool* show_and_keep(const bool& value) { return show_and_keep_copy(value); }
int* show_and_keep(const int& value) { return show_and_keep_copy(value); }
long* show_and_keep(const long& value) { return show_and_keep_copy(value); }
unsigned long* show_and_keep(const unsigned long& value) { return show_and_keep_copy(value); }
float* show_and_keep(const float& value) { return show_and_keep_copy(value); }
double* show_and_keep(const double& value) { return show_and_keep_copy(value); }

}  // namespace detail

namespace {
constinit __thread ScopeState before_line;
constinit __thread ops::Observed observed_before_line;
}  // namespace

void remember_scopes() {
  before_line = context();
  observed_before_line = ops::tls_observed;
}
void return_to_scopes() {
  static_cast<ScopeState&>(context()) = before_line;
  ops::tls_observed = observed_before_line;
  on_interrupt = {};
}

namespace {
std::atomic<Text (*)(const void*)> find_line_of_prompt{nullptr};
}

void set_find_line(Text (*find)(const void* address), const void* (*caller)()) {
  find_line_of_prompt.store(find, std::memory_order_release);
  kassette::set_find_line(
      [](const void* address) {
        return std::string(find_line_of_prompt.load(std::memory_order_acquire)(address).c_str());
      },
      caller);
}

namespace {
std::atomic<Describe> describe_of_prompt{nullptr};
}
void set_describe(Describe describe) { describe_of_prompt.store(describe, std::memory_order_release); }

bool may_jump() noexcept { return !devices::sharing_work() && !context().destroying && !ops::tls_observed.locks; }

namespace detail {

Sheet::Sheet(std::ostream* inside)
    : stream_(inside ? inside : new PlainStream), whole_(!inside),
      forms_(!inside && has_front_end() ? new Forms : nullptr) {}
Sheet::~Sheet() {
  if (!whole_) return;
  auto* words = static_cast<PlainStream*>(stream_);
  auto* forms = static_cast<Forms*>(forms_);
  if (forms) forms->deliver(words->str());
  else put_line(words->str());
  delete forms;
  delete words;
}
void Sheet::form(const char* mime, const char* data, std::size_t size) {
  if (forms_) static_cast<Forms*>(forms_)->add(mime, std::string(data, size));
}
void Sheet::add(const char* text) { *stream_ << text; }
void Sheet::quoted(const char* text, std::size_t size) { *stream_ << repl::quoted(text, size, '"'); }
void Sheet::address(const void* pointer) { *stream_ << (pointer ? text(pointer) : "nullptr"); }

namespace {
/// Name, of "... [with T = Name]" of g++, "... [T = Name]" of clang.
std::string type_in(const std::string& signature) {
  const auto begin = signature.rfind("T = ");
  return begin == std::string::npos ? "object" : signature.substr(begin + 4, signature.size() - begin - 5);
}
bool described(const std::string& type, const void* pointer, std::ostream& out) {
  const Describe describe = describe_of_prompt.load(std::memory_order_acquire);
  return describe && describe(type.c_str(), pointer, out);
}
}  // namespace

bool Sheet::enumerator(const char* what, const void* pointer) { return described(type_in(what), pointer, *stream_); }

void Sheet::object(const char* what, const void* pointer) {
  std::string name = type_in(what);
  if (described(name, pointer, *stream_)) return;
  if (name.find("(lambda") != std::string::npos || name.find("<lambda") != std::string::npos) name = "lambda";
  *stream_ << text('(', name, ") at ", pointer);
}

bool Sheet::room(std::int64_t index, std::int64_t size) {
  constexpr std::int64_t kShown = 100;
  if (index < kShown) return true;
  *stream_ << text(", ... ", size, " in all");
  return false;
}

}  // namespace detail
}  // namespace repl

KASSETTE_API std::string printValue(const Tensor* value, const void*) { return repl::text_of(*value); }
KASSETTE_API std::string printValue(const Shape* value, const void*) { return repl::text_of(*value); }

}  // namespace kassette

namespace cling {
KASSETTE_API std::string printValue(const kassette::Tensor* value) { return kassette::repl::text_of(*value); }
KASSETTE_API std::string printValue(const kassette::Tensors* value) { return kassette::repl::text_of(*value); }
KASSETTE_API std::string printValue(const kassette::NamedTensors* value) { return kassette::repl::text_of(*value); }
KASSETTE_API std::string printValue(const kassette::Shape* value) { return kassette::repl::text_of(*value); }
KASSETTE_API std::string printValue(const kassette::Extent* value) { return kassette::repl::text_of(*value); }
KASSETTE_API std::string printValue(const kassette::DType* value) { return kassette::repl::text_of(*value); }
KASSETTE_API std::string printValue(const kassette::Device* value) { return kassette::repl::text_of(*value); }
KASSETTE_API std::string printValue(const kassette::NoneType* value) { return kassette::repl::text_of(*value); }
KASSETTE_API std::string printValue(const kassette::Half* value) { return kassette::repl::text_of(*value); }
KASSETTE_API std::string printValue(const kassette::BFloat16* value) { return kassette::repl::text_of(*value); }
KASSETTE_API std::string printValue(const kassette::Text* value) { return kassette::repl::text_of(*value); }
KASSETTE_API std::string printValue(const kassette::PrintOptions* value) { return kassette::repl::text_of(*value); }
KASSETTE_API std::string printValue(const kassette::KeptObject* value) { return kassette::repl::text_of(*value); }
KASSETTE_API std::string printValue(const kassette::MemoryStats* value) { return kassette::repl::text_of(*value); }
KASSETTE_API std::string printValue(const kassette::Description* value) { return kassette::repl::text_of(*value); }
KASSETTE_API std::string printValue(const kassette::MemoryReport* value) { return kassette::repl::text_of(*value); }
KASSETTE_API std::string printValue(const kassette::Picture* value) { return kassette::repl::text_of(*value); }
KASSETTE_API std::string printValue(const kassette::Profile* value) { return kassette::repl::text_of(*value); }
KASSETTE_API std::string printValue(const kassette::Drawing* value) { return kassette::repl::text_of(*value); }
KASSETTE_API std::string printValue(const kassette::Timing* value) { return kassette::repl::text_of(*value); }
KASSETTE_API std::string printValue(const kassette::Function* value) { return kassette::repl::text_of(*value); }
KASSETTE_API std::string printValue(const kassette::distributed::World* value) {
  return kassette::repl::text_of(*value);
}
KASSETTE_API std::string printValue(const kassette::backend::Step* value) { return kassette::repl::text_of(*value); }
KASSETTE_API std::string printValue(const kassette::backend::RnnResult* value) {
  return kassette::repl::text_of(*value);
}
KASSETTE_API std::string printValue(const kassette::backend::NormalizedBatch* value) {
  return kassette::repl::text_of(*value);
}
KASSETTE_API std::string printValue(const kassette::backend::CtcDecoded* value) {
  return kassette::repl::text_of(*value);
}
KASSETTE_API std::string printValue(const kassette::backend::SparseParts* value) {
  return kassette::repl::text_of(*value);
}
KASSETTE_API std::string printValue(const kassette::testing::Comparison* value) {
  return kassette::repl::text_of(*value);
}
KASSETTE_API std::string printValue(const kassette::external::Value* value) { return kassette::repl::text_of(*value); }
}  // namespace cling
