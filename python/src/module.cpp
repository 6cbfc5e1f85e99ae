// python/src/module.cpp - the extension kassette._core: the functions of kassette with the names and arguments of
// Keras.
#include <kassette/interrupt.h>
#include <kassette/print.h>
#include <kassette/version.h>

#include <signal.h>

#include <atomic>

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

void translate(const std::exception_ptr& p, void*) {
  try {
    std::rethrow_exception(p);
  } catch (const ValueError& e) {
    PyErr_SetString(PyExc_ValueError, e.what());
  } catch (const TypeError& e) {
    PyErr_SetString(PyExc_TypeError, e.what());
  } catch (const AssertionError& e) {
    PyErr_SetString(PyExc_AssertionError, e.what());
  } catch (const NotImplementedError& e) {
    PyErr_SetString(PyExc_NotImplementedError, e.what());
  } catch (const MemoryError& e) {
    PyErr_SetString(PyExc_MemoryError, e.what());
  } catch (const Error& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
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
  py::bind_checks(m);
  py::bind_distributed(m);
  py::bind_devices(m);
  py::listen_for_interrupts();
  // Lines of print_tensor go where Python prints.
  kassette::set_print_sink([](const char* line) {
    nanobind::gil_scoped_acquire lock;
    nanobind::print(line);
  });
}
