// python/src/module.cpp - the extension kassette._core: the functions of kassette with the names and arguments of
// Keras.
#include <kassette/interrupt.h>
#include <kassette/print.h>
#include <kassette/version.h>

#include <signal.h>

#include <atomic>
#include <cstring>
#include <string>
#include <utility>

#include "convert.h"

namespace kassette {
namespace python {

bool import_numpy();

namespace {

std::atomic<int> computing{0};
struct sigaction pythons_action;

/// Python's handler only notes the signal, and looks at it between two of its own instructions.
void on_interrupt(int signal) {
  if (computing.load(std::memory_order_relaxed) > 0) request_interrupt();
  pythons_action.sa_handler(signal);
}

void listen_for_interrupts() {
  if (sigaction(SIGINT, nullptr, &pythons_action) != 0 || (pythons_action.sa_flags & SA_SIGINFO)) return;
  if (pythons_action.sa_handler == SIG_DFL || pythons_action.sa_handler == SIG_IGN) return;
  struct sigaction ours = pythons_action;
  ours.sa_handler = on_interrupt;
  sigaction(SIGINT, &ours, nullptr);
}

/// The line of an error with what is written otherwise in Python.
std::string in_python(std::string line) {
  static constexpr std::pair<const char*, const char*> kWords[] = {
      {"a list is one value in braces of its own, as in f({{1, 2}})", "they must be given as a list"},
      {"K::placeholder(shape, None, dtype, /*sparse=*/true)", "K.placeholder(shape, sparse=True)"},
      {"feed a sparse tensor (K::sparse_coo, K::sparse_csr, K::to_sparse)", "feed a matrix of SciPy's"},
      {"K::to_sparse(x) makes it so", "a matrix of SciPy's makes one"},
      {"K::to_dense and K::to_sparse convert", "K::to_dense converts"},
      {"K::None", "None"},
      {"K::switch_", "K.switch"},
      {"K::", "K."},
      {"kassette::", "kassette."}};
  for (const auto& [ours, pythons] : kWords)
    for (std::size_t at = 0; (at = line.find(ours, at)) != std::string::npos; at += std::strlen(pythons))
      line.replace(at, std::strlen(ours), pythons);
  return line;
}

void translate(const std::exception_ptr& p, void*) {
  auto raise = [](PyObject* kind, const Error& e) { PyErr_SetString(kind, in_python(e.what()).c_str()); };
  try {
    std::rethrow_exception(p);
  } catch (const ValueError& e) {
    raise(PyExc_ValueError, e);
  } catch (const TypeError& e) {
    raise(PyExc_TypeError, e);
  } catch (const AssertionError& e) {
    raise(PyExc_AssertionError, e);
  } catch (const NotImplementedError& e) {
    raise(PyExc_NotImplementedError, e);
  } catch (const MemoryError& e) {
    raise(PyExc_MemoryError, e);
  } catch (const Error& e) {
    raise(PyExc_RuntimeError, e);
  } catch (const Interrupted&) {
    // Python's own handler was asked as well, and knows what Ctrl-C is to do.
    if (PyErr_CheckSignals() == 0) PyErr_SetNone(PyExc_KeyboardInterrupt);
  }
}

}  // namespace

Computing::Computing() { computing.fetch_add(1, std::memory_order_relaxed); }
Computing::~Computing() {
  // One that came too late is Python's alone.
  if (computing.fetch_sub(1, std::memory_order_relaxed) == 1) cancel_interrupt();
}

}  // namespace python
}  // namespace kassette

NB_MODULE(_core, m) {
  namespace py = kassette::python;
  if (!py::import_numpy()) throw nanobind::python_error();
  nanobind::register_exception_translator(py::translate);
  m.attr("__version__") = kassette::version();
  py::bind_tensor(m);
  py::bind_math(m);
  py::bind_networks(m);
  py::bind_control(m);
  py::explain_arguments(m);
  py::bind_numpy(m);
  py::bind_checks(m);
  py::bind_distributed(m);
  py::bind_devices(m);
  py::bind_profile(m);
  py::listen_for_interrupts();
  // Lines of print_tensor go where Python prints.
  kassette::set_print_sink([](const char* line) {
    nanobind::gil_scoped_acquire lock;
    nanobind::print(line);
  });
}
