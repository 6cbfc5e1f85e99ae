// nn_backend/configuration/load_backend.cpp - loading the backend that the configuration names: the built-in one, a
// factory registered by the program, or a library.
#include "nn_backend/configuration/load_backend.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "core/log.h"
#include "core/print/printable.h"
#include "core/text.h"
#include "devices/plugin_file.h"
#include "nn_backend/configuration/trust.h"

namespace kassette {
using namespace ops;
namespace {

/// Factories registered by the program, and all backends that were in use: threads may still be inside them. Never
/// freed: they may be used while the program ends.
struct Registry {
  std::mutex mutex;
  std::map<std::string, external::Factory> factories;
  std::vector<std::unique_ptr<const ExternalBackend>> backends;
};
Registry& registry() {
  static Registry* r = new Registry;
  return *r;
}

constexpr const char *kEntry = "kassette_external_backend", *kOldEntry = "kassette_engine";

template <class... Words>
[[noreturn]] void fail_import(const std::string& name, const Words&... words) {
  const ErrorText said(words...);
  fail<ValueError>({}, "Unable to import backend : ", printable(name), ": ", printable(said.given), kExpected,
                   printable(said.expected), kRemedy, said.remedy);
}

std::string folder_of(const std::string& file) {
  std::size_t slash = file.rfind('/');
  return slash == std::string::npos ? "." : file.substr(0, slash);
}

struct Folder {
  std::string path;
  bool ours;  // trusted: a user who can write there can change the program itself
};

/// KASSETTE_BACKEND_PATH, the folder of the program, that of the library, and kassette/ in it.
std::vector<Folder> search_path() {
  std::vector<Folder> folders;
  const char* variable = secure_getenv("KASSETTE_BACKEND_PATH");
  std::string given = variable ? variable : "";
  for (std::size_t at = 0; at < given.size();) {
    std::size_t end = std::min(given.find(':', at), given.size());
    if (end > at) folders.push_back({given.substr(at, end - at), false});
    at = end + 1;
  }
  char program[4096];
  ssize_t n = ::readlink("/proc/self/exe", program, sizeof program);
  if (n > 0) folders.push_back({folder_of(std::string(program, n)), true});
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&backend::detail::load_backend), &info) && info.dli_fname) {
    folders.push_back({folder_of(info.dli_fname), true});
    folders.push_back({folder_of(info.dli_fname) + "/kassette", true});
  }
  return folders;
}

/// Returns `file`. Throws if another user could have put it there or can change it.
std::string trusted(const std::string& name, const std::string& file) {
  const backend::detail::Found found = backend::detail::look_up(file, /*open=*/false);
  if (!found.distrust.empty()) fail_import(name, file, " is not loaded, because ", found.distrust);
  return file;
}

/// my_package.my_module is my_package/my_module.so or my_package/libmy_module.so in a folder of the search path; a name
/// with a slash is a file.
std::string library_file(const std::string& name, const std::string& source) {
  if (name.find('/') != std::string::npos) return trusted(name, name);
  std::string path = name;
  for (char& c : path)
    if (c == '.') c = '/';
  std::size_t slash = path.rfind('/');
  std::size_t base = slash == std::string::npos ? 0 : slash + 1;
  std::string tried;
  for (const Folder& folder : search_path()) {
    for (const char* prefix : {"", "lib"}) {
      std::string file = folder.path + '/' + path.substr(0, base) + prefix + path.substr(base) + ".so";
      if (::access(file.c_str(), F_OK) == 0) return folder.ours ? file : trusted(name, file);
    }
    tried += (tried.empty() ? "" : ", ") + folder.path;
  }
  fail_import(name, "no ", path, ".so in ", tried, " (KASSETTE_BACKEND_PATH adds folders; the name comes from ", source,
              ", and KERAS_BACKEND=tensorflow overrides it)");
}

external::Factory library_factory(const std::string& name, const std::string& source, std::string& file) {
  file = library_file(name, source);
  std::string why;
  void* library = devices::open_library(file, RTLD_NOW | RTLD_NODELETE, &why);
  if (!library) fail_import(name, why);
  auto factory = reinterpret_cast<external::Factory>(dlsym(library, kEntry));
  if (factory) return factory;
  factory = reinterpret_cast<external::Factory>(dlsym(library, kOldEntry));
  if (!factory) fail_import(name, file, " has no function ", kEntry);
  log_warning(text(file, ": ", kOldEntry, " is now ", kEntry, "; the old name goes with 0.3.0"));
  return factory;
}

const external::Table& table_of(const std::string& name, external::Factory factory, const std::string& file) {
  const external::Table* table = nullptr;
  std::string threw;
  try {
    table = factory();
  } catch (const std::exception& e) {
    threw = e.what();
  } catch (...) {
    threw = "something that is not a std::exception";
  }
  if (!threw.empty()) fail_import(name, file, ": ", kEntry, " threw: ", threw.substr(0, threw.find('\n')));
  if (!table) fail_import(name, file, ": ", kEntry, " returned nothing");
  if (table->abi != external::kAbi)
    fail_import(name, file, " is built for version ", table->abi,
                " of <kassette/external_backend.h>, this kassette has ", external::kAbi, kRemedy, "build it anew");
  if (table->n_entries < 0 || (table->n_entries && !table->entries))
    fail_import(name, file + ": its table has no entries");
  return *table;
}

/// The functions of a table. Throws if a required one is missing.
const ExternalBackend* accept(const std::string& name, const external::Table& table, const std::string& file) {
  auto backend = std::make_unique<ExternalBackend>();
  backend->name = name;
  for (int i = 0; i < table.n_entries; ++i) {
    const external::Entry& e = table.entries[i];
    if (!e.name || !e.run) fail_import(name, file, ": entry ", i, " has no ", e.name ? "function" : "name");
    if (std::string_view(e.name) == "*") backend->any = e.run;
    else backend->functions[e.name] = e.run;
  }
  std::string missing;
  for (const char* required : {"placeholder", "variable", "function"})
    if (!backend->find(required)) missing += (missing.empty() ? "" : ", ") + std::string(required);
  if (!missing.empty())
    fail<ValueError>({}, "Invalid backend. Missing required entry : ", missing, " (backend ", name, ", ", file, ")");
  Registry& r = registry();
  std::lock_guard<std::mutex> lock(r.mutex);
  r.backends.push_back(std::move(backend));
  return r.backends.back().get();
}

/// The names of the built-in backend, and their banners. kassette.keras is the backend of Python's Keras, whose
/// keras.json and environment C++ programs share.
constexpr struct {
  const char* name;
  const char* banner;
} kOurs[] = {{"tensorflow", "Using TensorFlow backend."},
             {"kassette", "Using kassette backend."},
             {"kassette.keras", "Using kassette backend."},
             {"theano", "Using Theano backend."},
             {"cntk", "Using CNTK backend"}};

/// True for a name of the built-in backend; announces it.
bool is_ours(const std::string& name) {
  for (const auto& ours : kOurs) {
    if (name != ours.name) continue;
    log_info(ours.banner);
    if (name == "theano" || name == "cntk")
      log_warning(
          text("backend '", name,
               "' runs on the built-in backend, with TensorFlow's semantics; docs/backends.md lists the differences"));
    return true;
  }
  return false;
}

}  // namespace

namespace backend::detail {

const ExternalBackend* load_backend(const std::string& name, const std::string& source) {
  if (is_ours(name)) return nullptr;
  external::Factory factory = nullptr;
  {
    Registry& r = registry();
    std::lock_guard<std::mutex> lock(r.mutex);
    auto at = r.factories.find(name);
    if (at != r.factories.end()) factory = at->second;
  }
  external::BuiltInScope ours;  // what the backend computes while it starts is ours
  std::string file = "registered by the program";
  if (!factory) factory = library_factory(name, source, file);
  const ExternalBackend* backend = accept(name, table_of(name, factory, file), file);
  log_info(text("Using ", name, " backend."));
  return backend;
}

}  // namespace backend::detail

namespace external {

void register_backend(Name name, Factory factory) {
  std::string n = string_of(name);
  bool taken = n.empty();
  for (const auto& ours : kOurs) taken = taken || n == ours.name;
  if (taken) fail<ValueError>({"register_backend", "name"}, "'", n, "' is taken");
  if (!factory) fail<ValueError>({"register_backend", "factory"}, "is empty for '", n, "'");
  Registry& r = registry();
  std::lock_guard<std::mutex> lock(r.mutex);
  r.factories[n] = factory;
}

Value call(Name name, std::initializer_list<Value> args) {
  load_configuration();
  const std::string function = string_of(name);
  if (!external_backend())
    fail<NotImplementedError>({function.c_str()}, "the built-in backend has no functions other than those of K");
  return call_backend(function.c_str(), args.begin(), static_cast<int>(args.size()), nullptr, nullptr);
}

}  // namespace external
}  // namespace kassette
