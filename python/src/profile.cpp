// python/src/profile.cpp - profiles and the search for a NaN as context managers, which know the lines of Python.
#include <kassette/profile.h>
#include <kassette/repl.h>
#include <nanobind/stl/string.h>

#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <utility>

#include "convert.h"

namespace kassette {
namespace python {
namespace {

/// with kassette.profile("trace.json") as p: ...
class PythonProfile {
 public:
  explicit PythonProfile(std::string file) : file_(std::move(file)) {}
  PythonProfile& enter() {
    profile_ = std::make_unique<Profile>(file_.empty() ? Name(None) : Name(file_.c_str()));
    return *this;
  }
  void exit(const nb::args&) { running("exit").stop(); }
  void save(const std::string& file) { running("save").save(Name(file.c_str())); }
  std::string text() { return profile_ ? profile_->text().c_str() : "a profile that has not begun"; }

 private:
  Profile& running(const char* what) {
    if (!profile_)
      throw RuntimeError(prefixed(what, "the profile has not begun: with kassette.profile() as p").c_str());
    return *profile_;
  }
  std::string file_;
  std::unique_ptr<Profile> profile_;
};

/// with kassette.detect_nan(): ...
class PythonDetectNan {
 public:
  explicit PythonDetectNan(bool infinities) : infinities_(infinities) {}
  void enter() {
    DetectNanOptions options;
    options.infinities = infinities_;
    guard_ = std::make_unique<DetectNan>(options);
  }
  void exit(const nb::args&) { guard_.reset(); }

 private:
  bool infinities_;
  std::unique_ptr<DetectNan> guard_;
};

// A line of Python has no address. An entry of this table stands for it, and its own address is handed out.
struct Lines {
  std::mutex mutex;
  std::map<std::pair<std::string, int>, std::string> texts;
  std::string package;  // the folder of this package, with a / at its end
};
Lines& lines() {
  static auto* table = new Lines;
  return *table;
}

/// A file of whoever wrote the script: not of this package, nor of an installed one.
bool is_own(const std::string& file) {
  return file.find("-packages/") == std::string::npos && file.rfind(lines().package, 0) != 0 &&
         file.rfind("/usr/lib", 0) != 0 && file.rfind("<frozen", 0) != 0;
}

/// The innermost line of Python that is the user's; null if this thread does not run Python now.
const void* python_line() try {
  if (!PyGILState_Check()) return nullptr;
  nb::object frame = nb::borrow(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  while (frame.is_valid() && !frame.is_none()) {
    auto* at = reinterpret_cast<PyFrameObject*>(frame.ptr());
    const nb::object code = nb::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(at)));
    const nb::object name = code.attr("co_filename");
    if (std::string file = nb::cast<std::string>(name); is_own(file)) {
      const int line = PyFrame_GetLineNumber(at);
      Lines& table = lines();
      const std::lock_guard<std::mutex> lock(table.mutex);
      std::string& text = table.texts[{file, line}];
      if (text.empty()) text = file + ':' + std::to_string(line);
      return &text;
    }
    frame = nb::steal(reinterpret_cast<PyObject*>(PyFrame_GetBack(at)));
  }
  return nullptr;
} catch (const std::exception&) {  // no memory, or a name that is no text
  return nullptr;
}
Text text_of_line(const void* address) {
  Lines& table = lines();
  const std::lock_guard<std::mutex> lock(table.mutex);
  for (const auto& [line, text] : table.texts)
    if (&text == address) return Text(Name(text.c_str()));
  return Text();
}

}  // namespace

void bind_profile(nb::module_& m) {
  nb::class_<PythonProfile>(m, "Profile", "What kassette.profile() returns; str() of it is tables.")
      .def("__enter__", &PythonProfile::enter, nb::rv_policy::reference)
      .def("__exit__", &PythonProfile::exit)
      .def("__str__", &PythonProfile::text)
      .def("save", &PythonProfile::save, nb::arg("file"), "Writes what has been recorded as a trace.");
  m.def(
      "profile", [](std::string file) { return PythonProfile(std::move(file)); }, nb::arg("file") = "",
      "with kassette.profile('trace.json') as p: records every operation, and writes a trace for ui.perfetto.dev. "
      "print(p) prints tables by operation, line and function.");
  nb::class_<PythonDetectNan>(m, "DetectNan", "What kassette.detect_nan() returns.")
      .def("__enter__", &PythonDetectNan::enter)
      .def("__exit__", &PythonDetectNan::exit);
  m.def(
      "detect_nan", [](bool infinities) { return PythonDetectNan(infinities); }, nb::arg("infinities") = true,
      "with kassette.detect_nan(): the first operation that gives a NaN or an infinity raises RuntimeError, which says "
      "where it was called.");
  const auto file = nb::cast<std::string>(nb::module_::import_("kassette").attr("__file__"));
  lines().package = file.substr(0, file.rfind('/') + 1);
  repl::set_find_line(text_of_line, python_line);
}

}  // namespace python
}  // namespace kassette
