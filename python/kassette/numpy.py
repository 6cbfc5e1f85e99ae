"""Arrays as NumPy has them: the functions of <kassette/numpy.h> for eager tensors, as a namespace of the Python array API standard, 2024.12.

    import kassette.numpy as np

What these functions make are arrays: tensors whose operators, comparisons and indices are those of this module. They compute at once. A tensor of
kassette.keras is of the same class, and its operators stay Keras' own until a function of this module makes an array of it.
"""
import builtins
import functools
import inspect
import math
import sys
import types

import numpy

from . import _core
from ._core import Tensor

_functions = _core.numpy

# Functions and modules (random, linalg, ...) that python/make_numpy.py found; those below replace some.
for _name in dir(_functions):
    if not _name.startswith("_"):
        _item = getattr(_functions, _name)
        if inspect.ismodule(_item):
            sys.modules[f"{__name__}.{_name}"] = _item
        globals()[_name] = _item


# ---- dtypes -------------------------------------------------------------------------------------------------------------------------

class DType:
    """A dtype. It equals its name, which is what Tensor.dtype gives, and NumPy's dtype of that name."""

    __slots__ = ("name",)

    def __init__(self, name):
        self.name = name

    def __eq__(self, other):
        if isinstance(other, type) and issubclass(other, numpy.generic):   # numpy.float32 stands for its dtype
            return self.name == numpy.dtype(other).name
        return self.name == (other.name if isinstance(other, (DType, numpy.dtype)) else other)

    def __hash__(self):
        return hash(self.name)

    def __repr__(self):
        return f"kassette.numpy.{self.name}"

    def __str__(self):
        return self.name

    def __reduce__(self):
        return _dtype, (self.name,)

    @property
    def itemsize(self):
        return 1 if self.name == "bool" else int(self.name.lstrip("uintfloab")) // 8

    @property
    def dtype(self):
        """NumPy's, by which numpy.dtype accepts this one."""
        return numpy.dtype(self.name)


_SIGNED, _UNSIGNED, _FLOATS = ("int8", "int16", "int32", "int64"), ("uint8", "uint16", "uint32", "uint64"), ("float32", "float64")
_KINDS = {"bool": ("bool",), "signed integer": _SIGNED, "unsigned integer": _UNSIGNED, "integral": _SIGNED + _UNSIGNED,
          "real floating": _FLOATS + ("float16", "bfloat16"), "complex floating": (), "numeric": _SIGNED + _UNSIGNED + _FLOATS + ("float16", "bfloat16")}


def _has_dtype(name):
    try:
        _core.check_dtype(name)
    except TypeError:
        return False
    return True


_DTYPES = {name: DType(name) for name in ("bool",) + _KINDS["numeric"] if _has_dtype(name)}
globals().update(_DTYPES)
bool_ = _DTYPES["bool"]


def _dtype(x):
    """The dtype of an array, or what is given for a dtype."""
    if isinstance(x, DType):
        return x
    if isinstance(x, (Tensor, numpy.ndarray, numpy.generic)):
        return _dtype(str(x.dtype))
    if isinstance(x, str) and x in _DTYPES:
        return _DTYPES[x]
    if x is None:
        raise TypeError("a dtype is expected, not None")
    return _dtype(numpy.dtype(x).name)


e, pi, euler_gamma, inf, nan, newaxis = math.e, math.pi, 0.57721566490153286061, math.inf, math.nan, None


class finfo:
    """The limits of a dtype of floats."""

    def __init__(self, type):
        self.dtype = _dtype(type)
        if self.dtype not in _KINDS["real floating"]:
            raise TypeError(f"finfo: {self.dtype} is no dtype of floats")
        # Digits with the one before the point, and the exponents of the largest and the smallest normal number.
        digits, most, least = {"float16": (11, 15, -14), "bfloat16": (8, 127, -126), "float32": (24, 127, -126), "float64": (53, 1023, -1022)}[self.dtype.name]
        self.bits = 8 * self.dtype.itemsize
        self.eps = 2.0 ** (1 - digits)
        self.max = (2.0 - self.eps) * 2.0 ** most
        self.min = -self.max
        self.smallest_normal = 2.0 ** least

    def __repr__(self):
        return f"finfo(dtype={self.dtype}, bits={self.bits}, eps={self.eps}, min={self.min}, max={self.max}, smallest_normal={self.smallest_normal})"


class iinfo:
    """The limits of a dtype of integers."""

    def __init__(self, type):
        self.dtype = _dtype(type)
        if self.dtype not in _KINDS["integral"]:
            raise TypeError(f"iinfo: {self.dtype} is no dtype of integers")
        self.bits = 8 * self.dtype.itemsize
        self.max = 2 ** (self.bits - (self.dtype in _SIGNED)) - 1
        self.min = -self.max - 1 if self.dtype in _SIGNED else 0

    def __repr__(self):
        return f"iinfo(dtype={self.dtype}, bits={self.bits}, min={self.min}, max={self.max})"


def _promoted(a, b):
    """The dtype of a result of both; None where there is none, between two kinds."""
    if a == b:
        return a
    for kind in (_SIGNED, _UNSIGNED, _KINDS["real floating"]):
        if a in kind and b in kind:
            return _DTYPES["float32"] if a.itemsize == b.itemsize else builtins.max(a, b, key=lambda d: d.itemsize)
    if a in _KINDS["integral"] and b in _KINDS["integral"]:
        signed, unsigned = (a, b) if a in _SIGNED else (b, a)
        bits = 8 * builtins.max(signed.itemsize, 2 * unsigned.itemsize)
        return _DTYPES[f"int{bits}"] if bits <= 64 else None
    return None


def result_type(*arrays_and_dtypes):
    """The dtype of what is computed of arrays and dtypes. Numbers of Python's are weak: they only may not be of a higher kind."""
    strong = [_dtype(x) for x in arrays_and_dtypes if not isinstance(x, (builtins.bool, int, float)) or isinstance(x, numpy.generic)]
    if not strong:
        raise ValueError("result_type: an array or a dtype is expected")
    found = strong[0]
    for other in strong[1:]:
        both = _promoted(found, other)
        if both is None:
            raise TypeError(f"result_type: {found} and {other} are of two kinds; cast one of them (astype)")
        found = both
    for x in arrays_and_dtypes:
        if isinstance(x, float) and found not in _KINDS["real floating"] or \
                isinstance(x, int) and not isinstance(x, builtins.bool) and found == "bool":
            raise TypeError(f"result_type: {found} and a Python {type(x).__name__}; cast the array (astype)")
    return found


def promote_types(type1, type2):
    """The smallest dtype of one kind that holds both."""
    return result_type(_dtype(type1), _dtype(type2))


def can_cast(from_, to):
    """Whether promotion allows a cast: to a dtype that is what both are promoted to."""
    return _promoted(_dtype(from_), _dtype(to)) == _dtype(to)


def isdtype(dtype, kind):
    """Whether a dtype is another one, or of a kind such as 'integral', or one of a tuple of these."""
    if isinstance(kind, tuple):
        return builtins.any(isdtype(dtype, k) for k in kind)
    if isinstance(kind, str) and kind in _KINDS:
        return _dtype(dtype) in _KINDS[kind]
    if isinstance(kind, str) and kind not in _DTYPES:
        raise ValueError(f"isdtype: kind: is {kind!r}; it must be a dtype or one of {', '.join(_KINDS)}")
    return _dtype(dtype) == _dtype(kind)


def astype(x, dtype, /, *, copy=True, device=None):
    """x as another dtype. Floats to integers truncate. Values of tensors do not change, so that nothing is copied where the dtype stays."""
    return _moved(_functions.astype(x, dtype), device)


# ---- creation -----------------------------------------------------------------------------------------------------------------------

def _moved(x, device):
    return x if device is None else _functions.array(x.to(device))


def _holds_tensors(x):
    return isinstance(x, Tensor) or isinstance(x, (list, tuple)) and builtins.any(map(_holds_tensors, x))


def _natural(numbers):
    """The dtype of an array that NumPy made of Python's numbers: floatx and int64, where NumPy's own depend on them and on the system."""
    kind = numbers.dtype.kind
    if kind in "fi":
        return _core.floatx() if kind == "f" else "int64"
    return None


def asarray(obj, /, *, dtype=None, device=None, copy=None):
    """An array. Numbers of Python's and lists of them are int64, floatx or bool; arrays of NumPy's and of other libraries keep their dtype."""
    if copy is False:
        if isinstance(obj, Tensor) and obj.is_array and dtype in (None, obj.dtype) and device in (None, obj.device):
            return obj
        y = obj if isinstance(obj, Tensor) else _core.from_dlpack(obj) if hasattr(obj, "__dlpack__") else None
        if y is None:
            raise ValueError("asarray: copy: is False; numbers and lists must be copied")
        if dtype is not None and y.dtype != _dtype(dtype) or device is not None and y.device != device:
            raise ValueError("asarray: copy: is False; another dtype or device must be copied")
        return _functions.array(y)
    if isinstance(obj, Tensor):
        if obj.is_array and copy is None and dtype in (None, obj.dtype) and device in (None, obj.device):
            return obj
        y = _functions.array(obj, dtype)
    elif _holds_tensors(obj):
        y = stack([asarray(item) for item in obj])
        y = y if dtype is None else _functions.astype(y, dtype)
    elif isinstance(obj, (numpy.ndarray, numpy.generic)) or not isinstance(obj, (builtins.bool, int, float, list, tuple)):
        if not hasattr(obj, "__array__") and hasattr(obj, "__dlpack__"):
            y = _functions.array(_core.from_dlpack(obj), dtype)
        else:
            y = _functions.array(numpy.asarray(obj), dtype)
    else:
        numbers = numpy.asarray(obj)
        if dtype is None:
            dtype = _natural(numbers)
        if dtype is not None and _dtype(dtype) != "bfloat16" and numbers.dtype != _dtype(dtype) and (numbers.dtype.kind != "f" or _dtype(dtype) in _KINDS["real floating"]):
            numbers = numbers.astype(_dtype(dtype).name)
        y = _functions.array(numbers, dtype)
    return _moved(y, device)


def array(obj, dtype=None, *, copy=None):
    """asarray, by NumPy's name."""
    return asarray(obj, dtype=dtype, copy=copy)


def from_dlpack(x, /, *, device=None, copy=None):
    """An array over the memory of an array of another library, or a copy of it."""
    y = _core.from_dlpack(x)
    if copy:
        y = y.to("cpu").to(y.device) if y.device != "cpu" else _core.from_dlpack(_Copied(y))
    return _moved(_functions.array(y), device)


class _Copied:
    """Asks for a copy."""

    def __init__(self, x):
        self.x, self.__dlpack_device__ = x, x.__dlpack_device__

    def __dlpack__(self, **asked):
        return self.x.__dlpack__(**{**asked, "copy": True})


def _full(function):
    """full or full_like: integers of Python's are int64, floats floatx."""
    @functools.wraps(function)
    def wrapper(*args, dtype=None, **kwargs):
        if dtype is None and function.__name__ == "full":
            value = kwargs.get("fill_value", args[1] if builtins.len(args) > 1 else None)
            if isinstance(value, (builtins.bool, int)):
                dtype = "bool" if isinstance(value, builtins.bool) else "int64"
        return function(*args, dtype=dtype, **kwargs)
    return wrapper


def _on_device(function):
    """A function of creation, with the argument device."""
    own = inspect.signature(function)
    device = inspect.Parameter("device", inspect.Parameter.KEYWORD_ONLY, default=None)

    @functools.wraps(function)
    def wrapper(*args, device=None, **kwargs):
        return _moved(function(*args, **kwargs), device)
    wrapper.__signature__ = own.replace(parameters=[*own.parameters.values(), device])
    return wrapper


def eye(n_rows, n_cols=None, /, k=0, dtype=None):
    return _functions.eye(n_rows, n_cols, builtins.min(builtins.max(k, -2 ** 62), 2 ** 62), dtype)   # no diagonal is further out


full, full_like = _full(_functions.full), _full(_functions.full_like)
for _name in ("arange", "empty", "empty_like", "eye", "full", "full_like", "linspace", "ones", "ones_like", "zeros", "zeros_like"):
    globals()[_name] = _on_device(globals()[_name])


def fromfunction(function, shape, *, dtype=None):
    """function of the indices of a grid: an array of floats for each axis."""
    grid = _functions.indices(shape)
    return function(*(_functions.astype(i, dtype or _core.floatx()) for i in unstack(grid)))


def meshgrid(*arrays, indexing="xy", sparse=False):
    return _functions.meshgrid(arrays, indexing=indexing, sparse=sparse)


# ---- functions of several arrays, and what has another form in Python ---------------------------------------------------------------------

def broadcast_arrays(*arrays):
    return _functions.broadcast_arrays(arrays)


def einsum(subscripts, *operands):
    return _functions.einsum(subscripts, operands)


for _function, _wrapper in ((_functions.meshgrid, meshgrid), (_functions.broadcast_arrays, broadcast_arrays), (_functions.einsum, einsum), (_functions.eye, eye)):
    _wrapper.__doc__ = _function.__doc__.partition("\n\n")[2]


def tensordot(x, y, /, *, axes=2):
    """The sum over the last `axes` axes of x and the first ones of y, or over the axes that are listed: axes=([0], [1])."""
    if isinstance(axes, int):
        return _functions._tensordot_0(x, y, axes)
    of_x, of_y = axes
    return _functions._tensordot_1(x, y, of_x, of_y)


def block(rows):
    """A matrix of blocks, given by rows: block([[a, b], [c, d]])."""
    if not isinstance(rows, (list, tuple)):
        return asarray(rows)
    if rows and isinstance(rows[0], (list, tuple)):
        return concat([block(row) for row in rows], axis=-2)
    return concat([_functions.atleast_2d(x) for x in rows], axis=-1)


def reshape(x, /, shape, *, copy=None):
    """The elements in row-major order with another shape; one size may be -1 and is inferred. Values of tensors do not change, so that it may share memory."""
    return _functions.reshape(x, shape)


def conj(x, /):
    """x: there are no complex numbers."""
    return _functions.positive(asarray(x))


def real(x, /):
    """x: there are no complex numbers."""
    return _functions.positive(asarray(x))


def imag(x, /):
    """Zeros: there are no complex numbers."""
    return _functions.zeros_like(x)


def unstack(x, /, *, axis=0):
    """The slices along an axis, without it."""
    return tuple(_functions.unstack(x, axis))


def _in_tuple(function):
    """A function that returns a list of arrays, which are indices in a tuple."""
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return tuple(function(*args, **kwargs))
    return wrapper


def nonzero(x, /):
    """The indices of the elements that are not zero, in row-major order: int64 (n,) for each axis."""
    return tuple(_functions.nonzero(x))


for _name in ("unravel_index", "tril_indices", "triu_indices", "diag_indices"):
    globals()[_name] = _in_tuple(getattr(_functions, _name))


def piecewise(x, condlist, funclist, *args, **kw):
    """Functions of the elements of x for which conditions hold, or numbers there; where several hold, of the last of them. One more is for the elements for
    which none holds, which are 0 else."""
    x = asarray(x)
    conditions = [asarray(c, dtype="bool") for c in condlist]
    if builtins.len(funclist) not in (builtins.len(conditions), builtins.len(conditions) + 1):
        raise ValueError(f"piecewise: funclist: has {builtins.len(funclist)} functions; there must be one for each condition, and one more for the others")
    if builtins.len(funclist) > builtins.len(conditions):
        conditions.append(functools.reduce(_functions.logical_or, conditions, zeros_like(x, dtype="bool")) == False)   # noqa: E712
    y = zeros_like(x)
    for condition, function in zip(conditions, funclist):
        y[condition] = function(x[condition], *args, **kw) if callable(function) else function
    return y


def apply_over_axes(func, a, axes):
    """func(a, axis) for one axis after the other; axes that it reduces away stay with size 1."""
    y = asarray(a)
    for axis in (axes if isinstance(axes, (list, tuple)) else [axes]):
        axis = axis % y.ndim
        reduced = func(y, axis)
        y = reduced if reduced.ndim == y.ndim else _functions.expand_dims(reduced, axis)
    return y


def broadcast_shapes(*shapes):
    """The shape that arrays of these shapes broadcast to together."""
    return numpy.broadcast_shapes(*shapes)


def shape(x):
    return tuple(asarray(x).shape)


def ndim(x):
    return asarray(x).ndim


def size(x):
    return asarray(x).size


# ---- linalg: the standard's norms, and what it has in both places ---------------------------------------------------------------------

def _matrix_norm(x, /, *, keepdims=False, ord="fro"):
    """The norm of the matrices in the last two axes: 'fro', 'nuc', 1, -1, 2, -2, inf or -inf."""
    if ord == "nuc":
        values = _functions.sum(_functions.linalg.svdvals(x), -1)
        return _functions.expand_dims(values, (-2, -1)) if keepdims else values
    return _functions.linalg.matrix_norm(x, keepdims=keepdims, ord=None if ord == "fro" else ord)


def _vector_norm(x, /, *, axis=None, keepdims=False, ord=2):
    """(sum |x|^ord)^(1 / ord) over the axes; inf and -inf: the largest and the smallest |x|; 0: how many are not zero."""
    return _functions.linalg.vector_norm(x, axis=axis, keepdims=keepdims, ord=ord)


def _diagonal(x, /, *, offset=0):
    """The diagonals of the matrices in the last two axes."""
    return _functions.diagonal(x, offset, -2, -1)


def _trace(x, /, *, offset=0, dtype=None):
    """The sums of the diagonals of the matrices in the last two axes; integers are added in int64."""
    return _functions.sum(_diagonal(x, offset=offset), -1, dtype=dtype)


def _above(values, rtol):
    """Which singular values count: those above rtol, a number for each matrix, times the largest."""
    return _functions.greater(values, _functions.expand_dims(_functions.multiply(_functions.astype(rtol, values.dtype), _functions.max(values, -1)), -1))


def _pinv(x, /, *, rtol=None):
    if getattr(rtol, "ndim", 0) == 0:
        return _functions.linalg.pinv(x, None if rtol is None else float(rtol))
    u, s, vh = _functions.linalg.svd(x, False)
    counts = _above(s, rtol)
    inverse = _functions.where(counts, 1 / _functions.where(counts, s, 1.0), 0.0 * s)
    return _functions.matmul(_functions.multiply(vh.mT, _functions.expand_dims(inverse, -2)), u.mT)


def _matrix_rank(x, /, *, rtol=None):
    if getattr(rtol, "ndim", 0) == 0:
        return _functions.linalg.matrix_rank(x, None if rtol is None else float(rtol))
    return _functions.count_nonzero(_above(_functions.linalg.svdvals(x), rtol), -1)


class _Linalg(types.ModuleType):
    """The functions of <kassette/numpy/linalg.h>, as the standard's extension."""


linalg = _Linalg(f"{__name__}.linalg", _Linalg.__doc__)
vars(linalg).update({name: f for name, f in vars(_functions.linalg).items() if not name.startswith("_")}, matrix_norm=_matrix_norm, vector_norm=_vector_norm,
                    diagonal=_diagonal, trace=_trace, pinv=_pinv, matrix_rank=_matrix_rank)
for _name in ("pinv", "matrix_rank"):
    getattr(linalg, _name).__doc__ = getattr(_functions.linalg, _name).__doc__.partition("\n\n")[2]
for _name in ("cross", "matmul", "matrix_transpose", "outer", "tensordot", "vecdot"):
    setattr(linalg, _name, globals()[_name])
sys.modules[linalg.__name__] = linalg


# ---- inspection -------------------------------------------------------------------------------------------------------------------------

__array_api_version__ = "2024.12"


class __array_namespace_info__:
    """What this namespace can do; of the standard."""

    def capabilities(self):
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 8}

    def default_device(self):
        return "cpu"

    def devices(self):
        return ["cpu"] + [f"cuda:{i}" for i in builtins.range(_core.device_count())]

    def default_dtypes(self, *, device=None):
        return {"real floating": _DTYPES[_core.floatx()], "complex floating": None, "integral": _DTYPES["int64"], "indexing": _DTYPES["int64"]}

    def dtypes(self, *, device=None, kind=None):
        standard = {name: d for name, d in _DTYPES.items() if name not in ("float16", "bfloat16")}
        if kind is None:
            return standard
        return {name: d for name, d in standard.items() if isdtype(d, kind)}


__all__ = [name for name in globals() if not name.startswith("_") and name not in ("builtins", "functools", "inspect", "math", "numpy", "sys", "types")]
