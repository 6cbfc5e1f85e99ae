// python/src/numpy.h - NumPy's C API; its table of functions belongs to numpy.cpp, which defines KASSETTE_NUMPY_TABLE.
#pragma once
#define PY_ARRAY_UNIQUE_SYMBOL kassette_numpy
#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#ifndef KASSETTE_NUMPY_TABLE
#define NO_IMPORT_ARRAY
#endif
#include <nanobind/nanobind.h>
#include <numpy/arrayobject.h>
