"""What newer versions of Python, NumPy and h5py took away and Keras 2.3.1 uses, given back; each line says where.

`infer_shapes_of_lambdas` at the end gives what Keras has for TensorFlow alone. The versions that are known to work are in docs/python.md.
"""
import collections
import collections.abc
import functools
import importlib.util
import sys
import warnings

import numpy

# Python 3.10 moved the abstract classes; keras/engine/training_utils.py asks for collections.Mapping and Container, keras/utils for others.
for _name in collections.abc.__all__:
    if not hasattr(collections, _name):
        setattr(collections, _name, getattr(collections.abc, _name))

# NumPy 1.24 removed the aliases of Python's types: keras/backend/numpy_backend.py, keras/utils, models that users wrote then.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")   # asking NumPy for such a name warns
    for _name, _type in (("bool", bool), ("int", int), ("float", float), ("object", object)):
        if not hasattr(numpy, _name):
            setattr(numpy, _name, _type)

# NumPy 2 removed the capital one: keras/callbacks/callbacks.py, EarlyStopping, ModelCheckpoint and ReduceLROnPlateau.
if not hasattr(numpy, "Inf"):
    numpy.Inf = numpy.inf

# NumPy 2 removed second names: string_ in keras/utils/io_utils.py, reading a saved model, and unicode_ in keras_preprocessing, pad_sequences.
if not hasattr(numpy, "string_"):
    numpy.string_ = numpy.bytes_
if not hasattr(numpy, "unicode_"):
    numpy.unicode_ = numpy.str_


class _Text(str):
    """Text of an attribute in a file, which has what bytes had: keras/engine/saving.py decodes all attributes."""

    def decode(self, encoding="utf-8", errors="strict"):
        return str(self)


def _give_decode_to_attributes():
    # h5py 3 reads text as str, not as bytes.
    try:
        from h5py import AttributeManager
    except ImportError:   # Keras works without it, but for saving
        return
    read = AttributeManager.__getitem__

    def getitem(self, name):
        value = read(self, name)
        if isinstance(value, str):
            return _Text(value)
        if isinstance(value, numpy.ndarray) and value.dtype == object:   # a list of texts
            return numpy.array([v.encode("utf-8") if isinstance(v, str) else v for v in value.flat]).reshape(value.shape)
        return value

    AttributeManager.__getitem__ = getitem


def _open_files_in_memory_for_writing():
    # h5py 3 opens for reading unless told otherwise; keras/utils/io_utils.py makes a file in memory and does not tell.
    try:
        from h5py import File
    except ImportError:
        return
    init = File.__init__

    def made(self, name, mode=None, *args, **kwargs):
        if mode is None:
            mode = "a" if kwargs.get("driver") == "core" else "r"
        init(self, name, mode, *args, **kwargs)

    File.__init__ = functools.update_wrapper(made, init)
    if not hasattr(File, "fid"):   # the same file asks for its bytes by that name
        File.fid = File.id


def infer_shapes_of_lambdas(placeholder, int_shape):
    """Has a Lambda layer find its output shape by a call: keras/layers/core.py does so on TensorFlow, and elsewhere takes the input's."""
    layer = sys.modules["keras.layers.core"].Lambda
    as_given = layer.compute_output_shape

    @functools.wraps(as_given)
    def compute_output_shape(self, input_shape):
        if self._output_shape is not None:
            return as_given(self, input_shape)
        if isinstance(input_shape, list):
            y = self.call([placeholder(shape, dtype=dtype) for shape, dtype in zip(input_shape, self._input_dtypes)])
        else:
            y = self.call(placeholder(input_shape, dtype=self._input_dtypes))
        return [int_shape(x) for x in y] if isinstance(y, list) else int_shape(y)

    layer.compute_output_shape = compute_output_shape


def after_import(name, then):
    """Calls then(module) when the module of that name has been imported."""
    class Finder:
        @staticmethod
        def find_spec(fullname, path=None, target=None):
            if fullname != name:
                return None
            sys.meta_path.remove(Finder)
            spec = importlib.util.find_spec(fullname)
            if spec is None or not hasattr(spec.loader, "exec_module"):
                return spec
            run = spec.loader.exec_module

            def exec_module(module):
                run(module)
                then(module)

            spec.loader.exec_module = exec_module
            return spec

    sys.meta_path.insert(0, Finder)


def for_keras():
    """What changes h5py, for Keras alone."""
    _give_decode_to_attributes()
    _open_files_in_memory_for_writing()
