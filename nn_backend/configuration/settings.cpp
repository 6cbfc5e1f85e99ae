// nn_backend/configuration/settings.cpp - reading keras.json, and writing it if there is none.
#include "nn_backend/configuration/settings.h"

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <utility>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/io/file.h"
#include "core/log.h"
#include "core/print/printable.h"
#include "core/text.h"
#include "nn_backend/configuration/trust.h"

namespace kassette::backend::detail {
namespace {

using Json = nlohmann::json;

// Byte for byte as Python's Keras writes it: both share the file.
constexpr std::string_view kDefaults = R"({
    "floatx": "float32",
    "epsilon": 1e-07,
    "backend": "tensorflow",
    "image_data_format": "channels_last"
})";

/// The home directory of a user, or of the current one for an empty name. Empty if there is none.
std::string home_of(const std::string& user) {
  const char* home = secure_getenv("HOME");
  if (user.empty() && home && *home) return home;
  std::vector<char> buffer(1 << 14);
  passwd entry, *found = nullptr;
  if (user.empty()) getpwuid_r(getuid(), &entry, buffer.data(), buffer.size(), &found);
  else getpwnam_r(user.c_str(), &entry, buffer.data(), buffer.size(), &found);
  return found && found->pw_dir ? found->pw_dir : "";
}

std::string expand_user(const std::string& path) {
  if (path.empty() || path[0] != '~') return path;
  std::size_t end = std::min(path.find('/'), path.size());
  std::string home = home_of(path.substr(1, end - 1));
  return home.empty() ? path : home + path.substr(end);
}

constexpr std::size_t kLongest = 1 << 20, kLongestName = 1000;  // bytes; the defaults are 120

/// Reads everything from the descriptor and closes it.
std::string contents(const std::string& file, int descriptor) {
  std::string all;
  char part[4096];
  ssize_t n = 1;
  while (n > 0 && all.size() <= kLongest)
    if ((n = ::read(descriptor, part, sizeof part)) > 0) all.append(part, n);
    else if (n < 0 && errno == EINTR) n = 1;
  int error = errno;
  ::close(descriptor);
  if (n < 0) fail<RuntimeError>({}, "keras.json: cannot read ", file, ": ", errno_text(error));
  if (all.size() > kLongest)
    fail<RuntimeError>({}, "keras.json: cannot read ", file, ": it has more than ", kLongest, " bytes");
  return all;
}

/// Writes the file with the defaults, atomically, and never over an existing one: readers do not see half of it, and of
/// two concurrent writers one wins. Failures are ignored: the defaults apply without a file.
void write_defaults(const std::string& file) noexcept {
  try {
    // The permissions do not depend on the umask: other users must not be able to write a file that is read again.
    for (std::size_t at = file.find('/', 1); at != file.npos; at = file.find('/', at + 1))
      ::mkdir(file.substr(0, at).c_str(), 0755);
    io::OutputFile out("keras.json", file, 0644);
    out.write(std::string(kDefaults));
    out.commit(io::OutputFile::IfExists::keep);
  } catch (const std::exception& e) {
    log_debug(text("keras.json: not written: ", e.what()));
  }
}

/// A field of the file: its kind, its text as JSON, and, if it is a string, the string itself.
struct Field {
  enum Kind { kText, kFloat, kOther } kind = kOther;
  std::string json, text;
  const char* type = "null";  // in messages
  double number = 0;
};

/// Collects the fields of an object from parser events. No Json object is made: destroying one without memory ends the
/// program.
class Fields final : public nlohmann::json_sax<Json> {
 public:
  std::map<std::string, Field> fields;
  const char* type = "null";  // of the whole

  const Field* find(const char* name) const {
    auto at = fields.find(name);
    return at == fields.end() ? nullptr : &at->second;
  }
  bool null() override { return value({Field::kOther, "null", "", "null"}); }
  bool boolean(bool b) override { return value({Field::kOther, b ? "true" : "false", "", "boolean"}); }
  bool number_integer(number_integer_t n) override { return value({Field::kOther, text(n), "", "number"}); }
  bool number_unsigned(number_unsigned_t n) override { return value({Field::kOther, text(n), "", "number"}); }
  bool number_float(number_float_t n, const string_t&) override {
    return value({Field::kFloat, Json(n).dump(), "", "number", n});
  }
  bool string(string_t& s) override {
    return value({Field::kText, Json(s).dump(-1, ' ', false, Json::error_handler_t::replace), s, "string"});
  }
  bool binary(binary_t&) override { return false; }
  // Lists and objects are shown by their kind only: their contents are of no use here.
  bool start_object(std::size_t) override { return value({Field::kOther, "an object", "", "object"}) && ++depth_; }
  bool start_array(std::size_t) override { return value({Field::kOther, "an array", "", "array"}) && ++depth_; }
  bool end_object() override { return --depth_ >= 0; }
  bool end_array() override { return --depth_ >= 0; }
  bool key(string_t& name) override {
    if (depth_ == 1) name_ = name;
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

 private:
  bool value(Field f) {
    if (depth_ == 0) type = f.type;
    if (depth_ == 1) fields[name_] = std::move(f);
    return true;
  }

  int depth_ = 0;
  std::string name_;
};

/// The text of a field whose value is one of a few words.
std::string word(const std::string& file, const char* field, const Field& value,
                 std::initializer_list<const char*> words) {
  std::string known;
  for (const char* w : words) {
    if (value.kind == Field::kText && value.text == w) return w;
    known += text(known.empty() ? "" : " or ", '"', w, '"');
  }
  fail<AssertionError>({}, file, ": ", field, " is ", excerpt(value.json), kExpected, "it must be ", known);
}

/// The text with its long integers cut to what fits 64 bits: Python's integers are unbounded, and Json would parse long
/// ones as floats. Their values are not used. `whole` maps each shortened number to its original text.
std::string with_short_integers(const std::string& json, std::map<std::string, std::string>& whole) {
  constexpr std::size_t kDigits = 18;
  std::string out;
  bool quoted = false;
  for (std::size_t i = 0, end = 0; i < json.size(); i = end) {
    end = quoted ? i : std::min(json.find_first_not_of("+-.0123456789eE", i), json.size());
    if (end == i) {
      if (json[i] == '"') quoted = !quoted;
      end = std::min(i + (quoted && json[i] == '\\' ? 2 : 1), json.size());  // an escaped quote does not end a string
    }
    std::string part = json.substr(i, end - i);
    if (part.size() > kDigits && part.find_first_not_of("0123456789", part[0] == '-') == std::string::npos) {
      std::string rest = part.substr(0, kDigits);
      whole[rest] = std::move(part);
      part = std::move(rest);
    }
    out += part;
  }
  return out;
}

}  // namespace

void apply_settings(const std::string& all, const std::string& file, Settings& s) {
  std::map<std::string, std::string> whole;
  // Python's json refuses a byte order mark, whereas Json skips it.
  const bool marked = all.compare(0, 3, "\xef\xbb\xbf") == 0;
  Fields config;
  if (marked || !Json::sax_parse(with_short_integers(all, whole), &config)) {
    log_info(text(file, " is no JSON; the defaults hold"));
    return;
  }
  if (std::string_view(config.type) != "object")
    fail<TypeError>({}, file, ": holds ", config.type, kExpected, "it must hold an object");
  if (const Field* floatx = config.find("floatx"))
    s.floatx = DType(Name(word(file, "floatx", *floatx, {"float16", "float32", "float64"})));
  if (const Field* epsilon = config.find("epsilon")) {
    if (epsilon->kind != Field::kFloat) {
      const auto cut = whole.find(epsilon->json);
      fail<AssertionError>({}, file, ": epsilon is ",
                           cut == whole.end() ? excerpt(epsilon->json) : excerpt(cut->second), kExpected,
                           "it must be a float such as 1e-07 or 1.0");
    }
    s.epsilon = epsilon->number;
  }
  if (const Field* format = config.find("image_data_format"))
    s.channels_first =
        word(file, "image_data_format", *format, {"channels_last", "channels_first"}) == "channels_first";
  if (const Field* backend = config.find("backend")) {
    if (backend->kind != Field::kText) fail<TypeError>({}, file, ": backend is ", backend->type, ", not a name");
    const std::string& name = backend->text;
    // A writer of this file must not choose what code runs: libraries are loaded only from folders that the user has
    // named.
    if (name.find('/') != name.npos || name != printable(name) || name.find('\0') != name.npos ||
        name.size() > kLongestName)
      fail<ValueError>({}, "Unable to import backend : ", excerpt(name), ": not a name", kExpected, "backend in ", file,
                       " must be a name, such as my_package.my_module", kRemedy, "KERAS_BACKEND takes a path");
    s.backend = name;
    s.source = file;
  }
}

std::string keras_directory() {
  if (const char* given = secure_getenv("KERAS_HOME")) return expand_user(given);
  std::string home = home_of("");
  if (home.empty() || ::access(home.c_str(), W_OK) != 0) home = "/tmp";
  return home + "/.keras";
}

Settings read_settings() {
  Settings s;
  if (elevated()) return s;
  std::string directory = keras_directory(), file = directory.empty() ? "keras.json" : directory + "/keras.json";
  const std::string shown = printable(file);
  Found found = look_up(file, /*open=*/true);
  if (!found.distrust.empty())
    log_warning(text("keras.json: ", shown, " is not read and the defaults are used, because ", found.distrust));
  else if (found.error && found.regular)
    fail<RuntimeError>({}, "keras.json: cannot read ", shown, ": ", errno_text(found.error));
  else if (found.error) write_defaults(file);
  else if (found.descriptor < 0)
    fail<RuntimeError>({}, "keras.json: cannot read ", shown, ": ",
                       found.directory ? "Is a directory" : "is not a regular file");
  else apply_settings(contents(shown, found.descriptor), shown, s);
  const char* name = secure_getenv("KERAS_BACKEND");
  if (name && *name) {
    s.backend = name;
    s.source = "KERAS_BACKEND";
  }
  return s;
}

}  // namespace kassette::backend::detail
