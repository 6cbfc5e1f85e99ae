#!/usr/bin/env python3
"""tests/data/make_numpy_cases.py - writes numpy_cases.txt: what NumPy gives for the expressions of tests/np_samples.h.

Each row of that table is evaluated for the shapes of its cases, for several dtypes, and for special values: NaN, infinities, zeros of
both signs, ties and the limits of integers. An expression becomes Python by a few rules (`python_of`); what NumPy does not have is
defined in `np` below by SciPy or by other functions of NumPy, and a row that has no counterpart is in SKIPPED with the reason.

Run with NumPy 2.4 and SciPy: `python3 tests/data/make_numpy_cases.py`. A line is

    expression | dtype shape values | ... = dtype shape values ; dtype shape values
"""
import functools
import pathlib
import re
import sys
import types
import zlib

import numpy
import scipy.fft
import scipy.linalg
import scipy.signal
import scipy.spatial.distance
import scipy.special

root = pathlib.Path(__file__).resolve().parents[2]
np = types.SimpleNamespace(**{n: getattr(numpy, n) for n in dir(numpy) if not n.startswith("_")})
inf, nan, pi, e, euler_gamma = numpy.inf, numpy.nan, numpy.pi, numpy.e, numpy.euler_gamma
K = types.SimpleNamespace(permute_dimensions=numpy.transpose, shape=lambda x: x.shape, stop_gradient=lambda x: x)

# ---- what NumPy lacks, or calls by another name
for name in ("betainc", "erf", "erfc", "erfinv", "digamma", "gammainc", "gammaincc", "polygamma", "logsumexp"):
    setattr(np, name, getattr(scipy.special, name))
np.lgamma = scipy.special.gammaln
np.erfinv = scipy.special.erfinv


def as_float(x):
    return x.astype("float64") if isinstance(x, numpy.ndarray) and x.dtype.kind in "biu" else x


np.trapezoid = lambda y, *args, **options: numpy.trapezoid(as_float(y), *args, **options)   # NumPy adds in y's dtype, which wraps
np.gradient = lambda f, spacing=1, axis=None, edge_order=1: numpy.gradient(
    as_float(f), *(spacing if isinstance(spacing, tuple) and axis is None else [spacing]), axis=axis, edge_order=edge_order)
np.interp = lambda x, *args, **options: numpy.asarray(numpy.interp(x, *args, **options)).astype(x.dtype if x.dtype.kind == "f" else "float64")
np.lerp = lambda x, y, weight: x + weight * (y - x)
np.rint = lambda x: x if x.dtype.kind in "iu" else numpy.rint(x)   # NumPy's makes floats of integers
np.rsqrt = lambda x: 1 / numpy.sqrt(x)
np.ldexp = lambda x, y: (x * numpy.exp2(y)).astype(x.dtype)   # NumPy's takes integers as exponents


np.block = lambda rows: numpy.block([list(row) for row in rows])
np.delete_ = lambda x, index, axis=None: numpy.delete(x, index if isinstance(index, int) else list(index), axis)
np.insert = lambda x, index, values, axis=None: numpy.insert(x, index if isinstance(index, int) else list(index), values, axis)
np.split = lambda x, where, axis=0: numpy.split(x, where if isinstance(where, int) else list(where), axis)
np.array_split = lambda x, where, axis=0: numpy.array_split(x, where if isinstance(where, int) else list(where), axis)
np.meshgrid = lambda xs, **o: numpy.meshgrid(*xs, **o)
np.broadcast_arrays = lambda xs: numpy.broadcast_arrays(*xs)
np.logspace = lambda start, stop, num, base: numpy.logspace(start, stop, num, base=base)
np.linspace = lambda start, stop, num, **o: numpy.linspace(start, stop, num, **o)
np.array = lambda x, dtype: x.astype(dtype)
np.astype = lambda x, dtype: x.astype(dtype)
np.full = lambda shape, value: numpy.broadcast_to(value, shape)
np.unstack = lambda x, axis=0: numpy.unstack(x, axis=axis)
np.einsum = lambda subscripts, xs: numpy.einsum(subscripts, *xs)
np.tensordot = lambda x, y, axes=2, more=None: numpy.tensordot(x, y, axes if more is None else (axes, more))
np.trace = lambda x, *axes: numpy.trace(x, *axes, dtype=wide(x, None))
np.sliding_window_view = numpy.lib.stride_tricks.sliding_window_view
INFINITY = inf

# ---- linear algebra: the helpers of np_samples.h
conditioned = lambda x: x + 4 * numpy.eye(x.shape[-1], dtype=x.dtype)
definite = lambda x: conditioned(x @ numpy.swapaxes(x, -1, -2))


def triangular(a, b, lower=False, transposed=False, unit_diagonal=False):
    a = numpy.tril(a) if lower else numpy.triu(a)
    if unit_diagonal:
        a = a - a * numpy.eye(a.shape[-1], dtype=a.dtype) + numpy.eye(a.shape[-1], dtype=a.dtype)
    return numpy.linalg.solve(numpy.swapaxes(a, -1, -2) if transposed else a, b)


np.linalg = types.SimpleNamespace(**{n: getattr(numpy.linalg, n) for n in dir(numpy.linalg) if not n.startswith("_")})
np.linalg.cholesky = lambda x, upper=False: numpy.linalg.cholesky(x, upper=upper)
np.linalg.solve_triangular = triangular
np.linalg.cholesky_solve = lambda l, b: triangular(l, triangular(l, b, lower=True), lower=True, transposed=True)
np.linalg.vector_norm = lambda x, ord=2, axis=None, keepdims=False: numpy.linalg.vector_norm(x, axis=axis, keepdims=keepdims, ord=ord)
np.linalg.matrix_norm = lambda x, ord="fro": numpy.linalg.matrix_norm(x, ord=ord)
np.linalg.logdet = lambda x: numpy.where(numpy.linalg.slogdet(x)[0] < 0, nan, numpy.linalg.slogdet(x)[1])
np.linalg.lu = lambda x: tuple(part.astype(x.dtype) for part in scipy.linalg.lu(x))
np.linalg.matrix_exp = scipy.linalg.expm
np.linalg.toeplitz = lambda c, r=None: scipy.linalg.toeplitz(c, r)
np.linalg.block_diag = lambda xs: scipy.linalg.block_diag(*xs)
np.linalg.tensorsolve = lambda a, b, axes=None: numpy.linalg.tensorsolve(a, b, axes=None if axes is None else (axes,) if isinstance(axes, int) else axes)
np.linalg.lstsq = lambda a, b: types.SimpleNamespace(solution=numpy.linalg.lstsq(a, b)[0])

# ---- Fourier transforms: a pair is a complex array


def of_pair(function):
    return lambda x, *more, **options: function(x[0] + 1j * x[1] if isinstance(x, tuple) else x, *more, **options)


np.fft = types.SimpleNamespace(**{n: of_pair(getattr(numpy.fft, n)) for n in
                                  "fft ifft fft2 ifft2 fftn ifftn rfft irfft rfft2 irfft2 rfftn irfftn hfft ihfft".split()})
np.fft.fftn = of_pair(lambda x, s=None, axes=None, **o: numpy.fft.fftn(x, s, axes or s and range(-len(s), 0), **o))
np.fft.ifftn = of_pair(lambda x, s=None, axes=None, **o: numpy.fft.ifftn(x, s, axes or s and range(-len(s), 0), **o))
np.fft.irfftn = of_pair(lambda x, s=None, axes=None, **o: numpy.fft.irfftn(x, s, axes or s and range(-len(s), 0), **o))
np.fft.fftshift, np.fft.ifftshift = numpy.fft.fftshift, numpy.fft.ifftshift
for name in ("dct", "idct"):
    setattr(np.fft, name, lambda x, _f=getattr(scipy.fft, name), **options: _f(as_float(x.astype("uint8") if x.dtype.kind == "b" else x), **options))


def window_of(sequence_length, fft_length, window, weights):
    if weights is None and window is None:
        return numpy.ones(fft_length)
    w = numpy.asarray(weights) if weights is not None else scipy.signal.get_window(window, sequence_length)
    before = (fft_length - sequence_length) // 2
    return numpy.pad(w, (before, fft_length - sequence_length - before))


def stft(x, sequence_length, sequence_stride, fft_length, window="hann", weights=None, center=True):
    """keras.ops.stft by SciPy's, which divides by the sum of the window."""
    x = as_float(x.astype("uint8") if x.dtype.kind == "b" else x)
    w = window_of(sequence_length, fft_length, window, weights)
    if center:
        x = numpy.pad(x, [(0, 0)] * (x.ndim - 1) + [(fft_length // 2, fft_length // 2)], mode="reflect")
    y = scipy.signal.stft(x, window=w, nperseg=fft_length, noverlap=fft_length - sequence_stride, nfft=fft_length, boundary=None, padded=False)[-1]
    return numpy.swapaxes(y * w.sum(), -1, -2)


def istft(x, sequence_length, sequence_stride, fft_length, length=None, window="hann", weights=None, center=True):
    w = window_of(sequence_length, fft_length, window, weights)
    y = scipy.signal.istft(x, window=w, nperseg=fft_length, noverlap=fft_length - sequence_stride, nfft=fft_length, boundary=False, time_axis=-2, freq_axis=-1)[-1] / w.sum()
    start = fft_length // 2 if center else 0
    return y[..., start:start + length] if length else y[..., start:y.shape[-1] - start]


np.fft.stft, np.fft.istft = stft, of_pair(istft)


def listed(result):
    """The results of a function, those of complex numbers as pairs; and what is left of vectors whose signs are free."""
    name = type(result).__name__
    if isinstance(result, numpy.ndarray) and result.dtype.kind == "c":
        return [result.real, result.imag]
    if name == "QRResult":
        return [result.Q**2, result.R**2]
    if name == "SVDResult":
        return [result.U**2, result.S, result.Vh**2]
    if name == "EighResult":
        return [result.eigenvalues, result.eigenvectors**2]
    return list(result)


def wide(x, dtype):
    """Bool and integers as int64, unsigned ones as uint64."""
    return dtype or (numpy.int64 if x.dtype.kind in "bi" else numpy.uint64 if x.dtype.kind == "u" else x.dtype)


np.sum = lambda x, axis=None, dtype=None, keepdims=False: numpy.sum(x, axis=axis, dtype=wide(x, dtype), keepdims=keepdims)
np.prod = lambda x, axis=None, dtype=None, keepdims=False: numpy.prod(x, axis=axis, dtype=wide(x, dtype), keepdims=keepdims)
np.logsumexp = lambda x, axis=None, keepdims=False: scipy.special.logsumexp(x, axis=axis, keepdims=keepdims)
np.cumulative_sum = lambda x, axis=None, dtype=None, **o: numpy.cumulative_sum(x.ravel() if axis is None else x, axis=axis or 0, dtype=wide(x, dtype), **o)
np.cumulative_prod = lambda x, axis=None, dtype=None, **o: numpy.cumulative_prod(x.ravel() if axis is None else x, axis=axis or 0, dtype=wide(x, dtype), **o)


def descending(order):
    """The function that sorts, in descending order if asked: NaN last, equal elements in their order."""
    def sorts(x, axis=-1, descending=False):
        if axis is None:
            x, axis = x.ravel(), 0
        if not descending:
            return order(x, axis=axis, kind="stable")
        places = numpy.flip(numpy.flip(x, axis).argsort(axis=axis, kind="stable"), axis)
        places = x.shape[axis] - 1 - places
        if x.dtype.kind == "f":   # the NaNs, which are in front now, to the end
            nans = numpy.isnan(numpy.take_along_axis(x, places, axis))
            places = numpy.take_along_axis(places, nans.argsort(axis=axis, kind="stable"), axis)
        return places if order is numpy.argsort else numpy.take_along_axis(x, places, axis)
    return sorts


np.sort, np.argsort = descending(numpy.sort), descending(numpy.argsort)
np.partition = lambda x, kth, axis=-1: numpy.sort(numpy.partition(x, kth, axis), axis)
np.argpartition = lambda x, kth, axis=-1: numpy.argsort(x, axis, kind="stable")


def top_k(x, k, axis=-1):
    places = numpy.take(np.argsort(x, axis, descending=True), range(k), axis)
    return numpy.take_along_axis(x, places, axis), places


np.top_k = top_k


def cdist(x, y, p=2):
    """SciPy's, for each pair of matrices; its largest difference leaves NaN out."""
    if x.ndim > 2:
        return numpy.stack([cdist(a, b, p) for a, b in zip(x, y)])
    if p == inf:
        return numpy.abs(x[:, None] - y).max(-1)
    return scipy.spatial.distance.cdist(x, y, "minkowski", p=p)


np.cdist = cdist
np.tri = lambda n, m=None, k=0, dtype=numpy.float32: numpy.tri(n, m, k, dtype)
np.average_with_weights = lambda x, **o: numpy.average(x, returned=True, **o)


def nan_extreme(extreme, instead):
    """Without the error that NumPy raises where all elements are NaN: 0 there."""
    def positions(x, axis=None, keepdims=False):
        return extreme(numpy.where(numpy.isnan(x), instead, x) if x.dtype.kind == "f" else x, axis=axis, keepdims=keepdims)
    return positions


np.nanargmax, np.nanargmin = nan_extreme(numpy.argmax, -inf), nan_extreme(numpy.argmin, inf)
np.nansum = lambda x, axis=None, dtype=None, keepdims=False: numpy.nansum(x, axis=axis, dtype=wide(x, dtype), keepdims=keepdims)
np.nanprod = lambda x, axis=None, dtype=None, keepdims=False: numpy.nanprod(x, axis=axis, dtype=wide(x, dtype), keepdims=keepdims)
np.nancumsum = lambda x, axis=None: numpy.nancumsum(x, axis=axis, dtype=wide(x, None))
np.nancumprod = lambda x, axis=None: numpy.nancumprod(x, axis=axis, dtype=wide(x, None))


def running_extreme(ufunc):
    def extremes(x, axis=None):
        if axis is None:
            x, axis = x.ravel(), 0
        values = ufunc.accumulate(x, axis)
        first = numpy.ones(x.shape, bool)
        this, last = [numpy.moveaxis(v, axis, 0) for v in (values, values)]
        new = numpy.moveaxis(first, axis, 0)
        new[1:] = (this[1:] != last[:-1]) & ~numpy.isnan(last[:-1])
        places = numpy.arange(x.shape[axis]).reshape([-1] + [1] * (x.ndim - 1)) * new
        return values, numpy.moveaxis(numpy.maximum.accumulate(places, 0), 0, axis)
    return extremes


np.cummax, np.cummin = running_extreme(numpy.maximum), running_extreme(numpy.minimum)
np.logcumsumexp = lambda x, axis=None: numpy.logaddexp.accumulate(x.ravel() if axis is None else x, axis or 0)


def segment_sum(x, ids, n=None):
    sums = numpy.zeros(((max(ids, default=-1) + 1 if n is None else n), *x.shape[1:]), numpy.int64 if x.dtype == bool else x.dtype)
    numpy.add.at(sums, ids, x)
    return sums


np.segment_sum = segment_sum
np.cov = lambda x, **o: numpy.cov(x.astype("float64"), **{k: numpy.float64(v) if k in ("y", "aweights") else v for k, v in o.items()})
np.corrcoef = lambda x: numpy.corrcoef(x.astype("float64"))
np.histogram = lambda x, bins, **o: numpy.histogram(x if x.dtype.kind == "f" else x.astype("float32"), bins,
                                                     **{k: v * 1 if k == "weights" else v for k, v in o.items()})   # bool is not added



def put(function):
    """A function that changes its first argument, as one that returns another."""
    def changed(x, *args):
        y = x.copy()
        function(y, *args)
        return y
    return changed


def put_along_axis(y, indices, values, axis):
    numpy.put_along_axis(y, indices.astype("int64"), values if values.ndim else values[()], axis)


def scattered(assign):
    def changed(y, indices, updates):
        assign(y, tuple(numpy.moveaxis(indices, -1, 0)), updates)
    return put(changed)


def assign(y, key, values):
    y[key] = values


def slice_update(y, start, updates):
    y[tuple(slice(s, s + n) for s, n in zip(start, updates.shape))] = updates


np.put_along_axis, np.put, np.slice_update = put(put_along_axis), put(lambda y, i, v: assign(y.reshape(-1), i, v)), put(slice_update)
np.scatter_update, np.scatter_add, np.scatter_multiply = scattered(assign), scattered(numpy.add.at), scattered(numpy.multiply.at)
np.scatter_max, np.scatter_min = scattered(numpy.maximum.at), scattered(numpy.minimum.at)
np.scatter = lambda indices, values, shape: np.scatter_update(numpy.zeros(shape, values.dtype), indices, values)
np.select = lambda conditions, choices, default=0: numpy.select(list(conditions), list(choices), numpy.asarray(default, choices[0].dtype))
np.choose = lambda index, choices: functools.reduce(lambda y, i: numpy.where(index == i, choices[i], y), range(len(choices)), numpy.where(index == 0, choices[0], choices[0]))
np.piecewise = lambda x, conditions, functions: numpy.piecewise(x, list(conditions), list(functions))
np.ediff1d = lambda x, to_end=None, to_begin=None: numpy.ediff1d(x, to_end, to_begin)
np.array_equal = lambda x, y, equal_nan=False: numpy.asarray(numpy.array_equal(x, y, equal_nan))
np.array_equiv = lambda x, y: numpy.asarray(numpy.array_equiv(x, y))
np.packbits = lambda x, axis=None, order="big": numpy.packbits(x != 0, axis, order)
np.unpackbits = lambda x, axis=None, count=None, order="big": numpy.unpackbits(x, axis, count, order)
np.polyfit = lambda x, y, deg, w=None: numpy.polyfit(x, y, deg, w=w)
np.polyint = lambda p, m=1, k=0: numpy.polyint(as_float(p), m, [k] * m)
np.poly = lambda roots: numpy.atleast_1d(numpy.poly(roots)).astype(roots.dtype)
np.roots = lambda p: types.SimpleNamespace(real=numpy.roots(p).real.astype(p.dtype), imaginary=numpy.roots(p).imag.astype(p.dtype))
np.apply_over_axes = lambda f, x, axes: numpy.max(x, axes, keepdims=True)
np.histogram_bin_edges = lambda x, bins, range=None: numpy.histogram_bin_edges(x if x.dtype.kind == "f" else x.astype("float32"), bins, range)


def histogramdd(x, bins, weights=None, **o):
    counts, edges = numpy.histogramdd(x if x.dtype.kind == "f" else x.astype("float32"), bins if isinstance(bins, int) else [b if isinstance(b, int) else numpy.array(b) for b in bins],
                                      weights=None if weights is None else weights * 1, **o)
    return [*edges, counts]


np.histogramdd = histogramdd
np.polymul = numpy.convolve   # NumPy's leaves out zeros in front
np.histogram2d = lambda x, y, bins, **o: numpy.histogram2d(*(v if v.dtype.kind == "f" else v.astype("float32") for v in (x, y)), bins if isinstance(bins, int) else [b if isinstance(b, int) else numpy.array(b) for b in bins],
                                                               **{k: v * 1 if k == "weights" else v for k, v in o.items()})
np.lexsort = lambda keys, axis=-1: numpy.lexsort(keys, axis)
np.unique = lambda x, axis=None: numpy.unique(x, axis=axis)
np.unique_values = lambda x: numpy.unique(x, equal_nan=False)
np.compress = lambda condition, x, axis=None: numpy.compress(condition, x, axis)


def unique_all(x):
    values, indices, inverse, counts = numpy.unique(x, return_index=True, return_inverse=True, return_counts=True, equal_nan=False)
    return values, indices, inverse.reshape(x.shape), counts


np.unique_all = unique_all
np.unique_counts = lambda x: (unique_all(x)[0], unique_all(x)[3])
np.unique_inverse = lambda x: (unique_all(x)[0], unique_all(x)[2])

# Rows without a counterpart, by function, and why: drawn ones are in tests/numpy/random_test.cpp.
SKIPPED = {
    "random": "drawn", "standard_normal": "drawn", "uniform": "drawn", "normal": "drawn", "integers": "drawn",
    "exponential": "drawn", "laplace": "drawn", "gumbel": "drawn", "multivariate_normal": "drawn", "gamma": "drawn", "beta": "drawn",
    "dirichlet": "drawn", "poisson": "drawn", "binomial": "drawn", "bernoulli": "drawn", "categorical": "drawn",
    "lognormal": "drawn", "logistic": "drawn", "rayleigh": "drawn", "weibull": "drawn", "pareto": "drawn",
    "standard_cauchy": "drawn", "chisquare": "drawn", "geometric": "drawn", "multinomial": "drawn",
    "shuffle": "drawn", "permutation": "drawn", "choice": "drawn",
}
# Functions whose integer results have another dtype here, on purpose: the values are compared alone.
OTHER_DTYPE = {"divide", "mean", "var", "std", "vander", "linspace", "logspace", "geomspace", "median", "quantile", "percentile", "average", "average_with_weights", "nanmean", "nanvar", "nanstd", "nanmedian", "nanquantile", "nanpercentile", "nanmax", "nanmin", "cov", "corrcoef", "histogram", "bincount"}
LINALG = set("solve solve_triangular cholesky cholesky_solve inv pinv det slogdet qr svd svdvals eigh eigvalsh lstsq matrix_rank matrix_power "
             "multi_dot norm vector_norm matrix_norm cond logdet lu matrix_exp tensorsolve tensorinv".split())
# Functions whose special values differ, on purpose: they are left out there.
ORDINARY_ONLY = {"polygamma", "digamma", "gammainc", "gammaincc", "ldexp", "i0", "lgamma", "sinc", "logspace", "tensordot", "betainc", "lerp", "float_power", "quantile", "percentile", "average", "average_with_weights", "digitize", "nanquantile", "nanpercentile", "cov", "corrcoef", "histogram", "logcumsumexp"} | LINALG   # NaN in descending edges, infinities in quantiles, weights that add up to 0, i0(-inf) is nan in NumPy, gammaln(-inf) is -inf in SciPy
OTHER_DTYPE |= {"histogram_bin_edges", "histogram2d", "histogramdd", "polyint", "polyder", "array_equal", "array_equiv"} | {"trapezoid", "gradient", "interp"}
ORDINARY_ONLY |= {"unwrap", "polyval", "polyfit", "polyadd", "polysub", "polymul", "polydiv", "polyder", "polyint", "poly", "roots", "histogram_bin_edges", "histogram2d", "histogramdd"}
ORDINARY_ONLY |= {"trapezoid", "gradient", "interp", "convolve", "correlate"}
FFT = set("fft ifft fft2 ifft2 fftn ifftn rfft irfft rfft2 irfft2 rfftn irfftn hfft ihfft dct idct stft istft".split())
OTHER_DTYPE |= FFT
ORDINARY_ONLY |= FFT
# Integer division by 0 is an error here.
NO_ZERO = {"divmod", "floor_divide", "remainder", "fmod"}
# What depends on the dtype itself.
OWN_DTYPE = {"spacing", "nan_to_num", "nextafter", "float_power"}
# Which of two zeros of different signs is left is not said.
EITHER_ZERO = {"unique", "unique_values", "unique_all", "unique_counts", "unique_inverse", "union1d", "intersect1d", "setdiff1d", "setxor1d", "einsum", "vecdot", "dot", "vdot", "matmul", "inner", "trace", "pad", "logsumexp", "sum", "mean", "cumulative_sum", "erfinv", "maximum", "minimum", "fmax", "fmin", "max", "min", "clip", "sort", "partition", "top_k", "median", "nansum", "nanmean", "nanmax", "nanmin", "nancumsum", "nanmedian", "cummax", "cummin", "segment_sum"}


def python_of(expression):
    """The expression in Python."""
    text = re.sub(r"\{\s*\.", "OPTIONS{.", expression)
    out, depth = "", []
    i = 0
    while i < len(text):
        if text.startswith("OPTIONS{", i):
            depth.append("")
            i += 8
            continue
        c = text[i]
        if c == "{":
            depth.append(",)")
            out += "("
        elif c == "}":
            close = depth.pop()
            out += close if close and not out.endswith("(") else close.replace(",", "")
        else:
            out += c
        i += 1
    out = re.sub(r"(?<![\w)])\.(\w+) = ", r"\1=", out)
    out = out.replace("np::", "np.").replace("K::", "K.").replace("linalg::", "linalg.").replace("fft::", "fft.").replace("true", "True").replace("false", "False")
    return re.sub(r"\b(float32|float64|int32|int64|uint8|uint32|uint64|bool_)\b(?!\")", r"numpy.\1", out)


def rows(source="tests/np_samples.h"):
    """Name, cases, expression, inputs and what is taken, of each row of the table."""
    text = (root / source).read_text() + (root / "tests/op_samples.h").read_text()
    shapes = dict(re.findall(r"(k\w+) =\s*((?:\"[^\"]*\"\s*)+);", text))
    table = (root / source).read_text()
    for line in re.findall(r'^    (\{"\w+", .*\}),$', table, re.M):
        name, cases = re.match(r'\{"(\w+)", ("[^"]*"|k\w+), CALL\(', line).groups()
        cases = "".join(re.findall(r'"([^"]*)"', shapes.get(cases, cases)))
        start = line.index("CALL(") + 5
        depth, end = 1, start
        while depth:
            depth += (line[end] == "(") - (line[end] == ")")
            end += 1
        expression, rest = line[start:end - 1], line[end + 3:]
        depth, end = 1, 0
        while depth:
            depth += (rest[end] == "{") - (rest[end] == "}")
            end += 1
        inputs, takes = rest[:end - 1], re.search(r"kFloats|kNumbers|kAnything|kBools|Takes::integers|Takes::bits", rest[end:])
        yield name, cases, expression, inputs_of(inputs), (takes[0] if takes else "kFloats").removeprefix("Takes::")


RANGES = {"kAnywhere": (-2, 2), "kReal": (-2, 2), "kSmall": (-.6, .6), "kPositive": (.2, 3), "kUnit": (.05, .95), "kBool": (0, 1, "bool"), "kNoPath": (-2, 2), "kShape": (-2, 2), "kTarget": (.05, .95), "kOptional": (-2, 2), "kOptionalPositive": (.2, 3), "kOptionalBool": (0, 1, "bool")}


def inputs_of(text):
    """Low, high and perhaps the dtype of each input."""
    out = []
    for word in re.findall(r"k\w+|index_below\(\d+(?:, \w+)?\)|\{[^{}]*\}", text):
        if word.startswith("index_below"):
            n, dtype = re.match(r"index_below\((\d+)(?:, (\w+))?", word).groups()
            out.append((0, int(n) - 1, dtype or "int32"))
        elif word.startswith("{"):
            number = r"[-\d.]+"
            plain = re.match(rf"\{{({number}), ({number})", word)
            low, high = plain.groups() if plain else (*(re.findall(rf"low = ({number})", word) or [-2]), *(re.findall(rf"high = ({number})", word) or [2]))
            dtype = re.search(r"dtype = (\w+)", word)
            out.append((float(low), float(high), *([dtype[1].rstrip("_")] if dtype else [])))
        else:
            out.append(RANGES[word])
    return out


DTYPES = {"kFloats": ["float32", "float64"], "kNumbers": ["float32", "float64", "int32", "uint8", "int64", "uint64"],
          "kAnything": ["float32", "float64", "int32", "uint8", "bool"], "kBools": ["bool"], "bits": ["int32", "uint8", "int64", "bool"], "integers": ["int32", "uint8", "int64", "int8", "uint32"]}
SPECIAL = {"float": [nan, inf, -inf, 0.0, -0.0, 1.0, -1.0, 1.0, 0.5], "int": [0, 1, -1, 7, 7, -8, 3], "uint": [0, 1, 255, 7, 7, 8, 3], "bool": [0, 1, 1, 0]}


def arrays(shape, low, high, dtype, rng, special):
    kind = numpy.dtype(dtype).kind
    n = int(numpy.prod(shape))
    if special:
        values = numpy.array(SPECIAL[{"f": "float", "i": "int", "u": "uint", "b": "bool"}[kind]])
        drawn = values[rng.integers(0, len(values), n)].astype(dtype).reshape(shape)
        return drawn + 0 if special == "one zero" and kind == "f" else drawn
    if kind == "f":
        return (low + (high - low) * rng.random(n)).astype(dtype).reshape(shape)
    low = max(low, 0) if kind in "ub" else low
    return rng.integers(int(numpy.ceil(low)), int(numpy.floor(max(high, low))) + 1, n).astype(dtype).reshape(shape)


def text_of(x):
    x = numpy.asarray(x)
    if x.dtype.kind == "f":
        words = [numpy.format_float_scientific(v, unique=True, trim="-") if numpy.isfinite(v) else str(v) for v in x.ravel()]
    else:
        words = [str(int(v)) for v in x.ravel()]
    shape = ",".join(map(str, x.shape))
    return " ".join([str(x.dtype), f"({shape})", *words])


def main():
    only = sys.argv[1:]
    out, count = [], 0
    for name, cases, expression, inputs, takes in rows():
        if only and name not in only:
            continue
        if name in SKIPPED:
            continue
        rng = numpy.random.default_rng(zlib.crc32(expression.encode()))   # a row added changes no other's numbers
        code = compile(python_of(expression), expression, "eval")
        parsed = [[tuple(int(d) for d in s.split(",") if d) for s in re.findall(r"\(([\d,]*)\)", case)] for case in cases.split("|")]
        found = set()
        for dtype in DTYPES[takes]:
            for number, shapes in enumerate(parsed):
                for special in (False, True):
                    # Every shape in two dtypes, the first ones in all.
                    if number > 1 and dtype not in ("float32", "int32", "bool") or special and (number > 2 or name in ORDINARY_ONLY or name in NO_ZERO and dtype[0] in "iu"):
                        continue
                    given = [arrays(s, i[0], i[1], i[2] if len(i) > 2 else dtype, rng, special and len(i) < 3 and ("one zero" if name in EITHER_ZERO else True)) for s, i in zip(shapes, inputs)]
                    scope = dict(zip("xyzw", given), np=np, numpy=numpy, list=listed, max_along=None, conditioned=conditioned, definite=definite, INFINITY=inf, K=K, inf=inf, nan=nan, None_=None)
                    try:
                        # In float64, rounded once, except where the elements themselves are the result.
                        with numpy.errstate(all="ignore"):
                            result = eval(code, scope)
                            exact = {k: v.astype("float64") if k in "xyzw" and v.dtype == numpy.float32 else v for k, v in scope.items() if k in "xyzw"}
                            better = result if name in OWN_DTYPE else eval(code, {**scope, **exact})
                    except TypeError:
                        if dtype != "bool":
                            raise
                        continue   # NumPy has no such function of bool
                    except (ValueError, ZeroDivisionError) as error:
                        if special or "zero" in str(error) or "empty" in str(error) or "negative" in str(error):
                            continue
                        raise SystemExit(f"{expression} {shapes} {dtype}: {error}")
                    results = result if isinstance(result, (tuple, list)) else [result]
                    betters = better if isinstance(better, (tuple, list)) else [better]
                    rounded = [b if numpy.asarray(b).dtype == numpy.asarray(r).dtype else numpy.asarray(b).astype(numpy.asarray(r).dtype)
                               for r, b in zip(results, betters)]
                    # Python's numbers are weak, and SciPy's functions make float64 of them.
                    if given and all(v.dtype == numpy.float32 for v in given) and name not in OTHER_DTYPE | OWN_DTYPE and "float64" not in expression:
                        rounded = [r.astype("float32") if numpy.asarray(r).dtype == numpy.float64 else r for r in map(numpy.asarray, rounded)]
                    line = f"{expression} | {' | '.join(map(text_of, given))} = {' ; '.join(map(text_of, rounded))}"
                    if line not in found:
                        found.add(line)
                        out.append(line)
                        count += 1
    head = f"# tests/data/numpy_cases.txt - made by make_numpy_cases.py with NumPy {numpy.__version__} and SciPy {scipy.__version__}.\n"
    head += "# differs in dtype: " + " ".join(sorted(OTHER_DTYPE)) + "\n"
    head += "# has zeros of either sign: " + " ".join(sorted(FFT)) + "\n"
    (root / "tests/data/numpy_cases.txt").write_text(head + "\n".join(out) + "\n")
    print(count, "cases")


if __name__ == "__main__":
    main()
