"""kassette.numpy: arrays beside NumPy's, dtypes, operators, and what the array API standard asks for."""
import inspect
import math
import pickle

import numpy
import pytest

import kassette
import kassette.keras as K
import kassette.numpy as np


def same(ours, theirs):
    """Whether an array has the shape, the dtype and the values of NumPy's."""
    theirs = numpy.asarray(theirs)
    assert ours.is_array and tuple(ours.shape) == theirs.shape and ours.dtype == theirs.dtype.name
    numpy.testing.assert_allclose(numpy.asarray(ours), theirs, rtol=1e-6)
    return True


X = numpy.arange(24.0).reshape(2, 3, 4) - 7
I = numpy.arange(6).reshape(2, 3)


# ---- functions ----------------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("call", [
    lambda m, x, i: m.sum(x, axis=1, keepdims=True),
    lambda m, x, i: m.sum(i, axis=(0, 1)),
    lambda m, x, i: m.sum(i, dtype="float64"),
    lambda m, x, i: m.mean(x, axis=-1),
    lambda m, x, i: m.argmax(x, axis=2),
    lambda m, x, i: m.cumulative_sum(i, axis=1, include_initial=True),
    lambda m, x, i: m.concat([x, x], axis=0),
    lambda m, x, i: m.concatenate([x, x], axis=None),
    lambda m, x, i: m.stack([i, i], axis=1),
    lambda m, x, i: m.permute_dims(x, (2, 0, 1)),
    lambda m, x, i: m.transpose(x),
    lambda m, x, i: m.reshape(x, (4, -1)),
    lambda m, x, i: m.roll(x, 2, axis=1),
    lambda m, x, i: m.flip(x, axis=0),
    lambda m, x, i: m.tile(i, (2, 1)),
    lambda m, x, i: m.repeat(i, 2, axis=1),
    lambda m, x, i: m.pad(i, 1),
    lambda m, x, i: m.pad(x, ((0, 0), (1, 2), (0, 1)), mode="edge"),
    lambda m, x, i: m.matmul(x, m.transpose(x, (0, 2, 1))),
    lambda m, x, i: m.tensordot(x, x, axes=([1, 2], [1, 2])),
    lambda m, x, i: m.tensordot(x, m.permute_dims(x, (1, 2, 0)), axes=2),
    lambda m, x, i: m.einsum("ijk,ijk->i", x, x),
    lambda m, x, i: m.block([[i, i], [i, i]]),
    lambda m, x, i: m.split(x, 2, axis=2)[1],
    lambda m, x, i: m.split(x, [1, 3], axis=2)[1],
    lambda m, x, i: m.array_split(x, 3, axis=2)[0],
    lambda m, x, i: m.unstack(x, axis=1)[2],
    lambda m, x, i: m.meshgrid(i[0], x[0, 0], indexing="ij")[1],
    lambda m, x, i: m.broadcast_arrays(x, x[0, :, :1])[1],
    lambda m, x, i: m.floor_divide(i, 4),
    lambda m, x, i: m.bitwise_left_shift(i, 2),
    lambda m, x, i: m.atan2(x, x + 0.5),
    lambda m, x, i: m.isfinite(x),
    lambda m, x, i: m.eye(3, 4, k=1, dtype="float64"),
    lambda m, x, i: m.eye(3, 4, k=2 ** 40, dtype="float64"),
    lambda m, x, i: m.eye(3, 4, k=-2 ** 70, dtype="float64"),
    lambda m, x, i: m.linspace(0.0, 1.0, 5, dtype="float64"),
    lambda m, x, i: m.linspace(0.0, 1.0, 4, dtype="float64", endpoint=False),
    lambda m, x, i: m.arange(2, 11, 3),
    lambda m, x, i: m.full((2, 3), 7),
    lambda m, x, i: m.full_like(x, 7),
    lambda m, x, i: m.zeros_like(i),
    lambda m, x, i: m.fromfunction(lambda a, b: a * 2 + b, (2, 3), dtype="float64"),
])
def test_a_function_gives_what_numpy_gives(call):
    try:
        expected = call(numpy, X, I)
    except AttributeError:
        assert numpy.__version__ < "2"
        pytest.skip("a name of NumPy 2")
    assert same(call(np, np.asarray(X), np.asarray(I)), expected)


def test_numpys_arrays_and_lists_are_accepted():
    assert same(np.add(X, X), X + X) and same(np.add([1, 2], [3, 4]), numpy.add([1, 2], [3, 4]))
    assert same(np.sum([[True, False], [True, True]], axis=0), [2, 1])
    assert np.add([1, 2], 1.5).dtype == "float32" and np.add(np.asarray([1.0, 2.0]), [1, 2]).dtype == "float32"   # beside an array a list is weak
    assert same(np.stack([X, X]), numpy.stack([X, X]))


def test_results_with_names():
    pair = np.divmod(np.asarray([7, -7]), 2)
    assert type(pair).__module__ == "kassette.numpy" and same(pair.quotient, [3, -4]) and same(pair[1], [1, 1])


def test_linalg():
    a = numpy.array([[4.0, 1.0], [1.0, 3.0]])
    for ord in ("fro", "nuc", 1, 2, math.inf):
        assert same(np.linalg.matrix_norm(X, ord=ord, keepdims=True), numpy.linalg.norm(X, ord, (-2, -1), keepdims=True))
    assert same(np.linalg.vector_norm(X, axis=1), numpy.linalg.norm(X, axis=1)) and same(np.linalg.vector_norm(X, ord=1), numpy.abs(X).sum())
    assert same(np.linalg.solve(a, [1.0, 2.0]), numpy.linalg.solve(a, [1.0, 2.0])) and same(np.linalg.matmul(a, a), a @ a)
    assert same(np.linalg.diagonal(X, offset=1), numpy.linalg.diagonal(X, offset=1) if hasattr(numpy.linalg, "diagonal") else X.diagonal(1, -2, -1))
    assert same(np.linalg.trace(I.astype("int32")), I.trace()) and same(np.linalg.trace(X, dtype="float32"), X.trace(0, -2, -1).astype("float32"))
    pair, rtol = numpy.stack([a, numpy.array([[1.0, 0.0], [0.0, 0.1]])]), numpy.array([0.0, 0.5])
    assert same(np.linalg.pinv(pair, rtol=rtol), numpy.linalg.pinv(pair, rtol)) and same(np.linalg.matrix_rank(pair, rtol=rtol), [2, 1])
    assert same(np.linalg.pinv(a, rtol=numpy.array(0.9)), numpy.linalg.pinv(a, 0.9))
    assert np.linalg.qr(a)._fields == ("Q", "R") and same(np.linalg.svd(a).S, numpy.linalg.svd(a)[1])
    assert np.linalg.slogdet(a)._fields == ("sign", "logabsdet") and same(np.linalg.eigh(a).eigenvalues, numpy.linalg.eigh(a).eigenvalues)


def test_fft_takes_and_gives_pairs():
    z = np.fft.fft(X)
    assert z._fields == ("real", "imag") and same(z.real, numpy.fft.fft(X).real) and same(z.imag, numpy.fft.fft(X).imag)
    assert same(np.fft.ifft(z).real, X) and same(np.fft.irfft(np.fft.rfft(X), n=X.shape[-1]), X)
    assert same(np.fft.fft2((X, X), axes=(0, 1), norm="ortho").imag, numpy.fft.fft2(X + 1j * X, axes=(0, 1), norm="ortho").imag)
    frames = np.fft.stft(X.ravel(), 4, 2, 4, window=None, center=False)
    assert same(np.fft.istft(frames, 4, 2, 4, window=None, center=False), X.ravel()[:2 * frames.real.shape[0] + 2])
    assert same(np.fft.fftshift(np.fft.fftfreq(4, 0.5, "float64")), numpy.fft.fftshift(numpy.fft.fftfreq(4, 0.5)))


def test_functions_have_signatures_and_comments():
    signature = inspect.signature(np.sum)
    assert list(signature.parameters) == ["x", "axis", "dtype", "keepdims"]
    assert signature.parameters["keepdims"].kind is inspect.Parameter.KEYWORD_ONLY and signature.parameters["keepdims"].default is False
    assert "added in int64" in np.sum.__doc__ and "grid" in np.meshgrid.__doc__
    assert list(inspect.signature(np.zeros).parameters) == ["shape", "dtype", "device"]


@pytest.mark.parametrize("call, line", [
    (lambda: np.sum([1.0], axis=3), "sum: axis 3 is out of range"),
    (lambda: np.sum([1.0], wrong=3), "sum: got an unexpected keyword argument 'wrong'"),
    (lambda: np.add(1, "two"), "add: y: a tensor, a number or an array is expected, not str"),
    (lambda: np.einsum("ij", None), "einsum: operands: None where an array is expected"),
    (lambda: np.add(np.asarray([1]), np.asarray([1.5])), "add: y is float32 and x is int64; cast one of them"),
    (lambda: np.asarray([1], copy=False), "asarray: copy: is False; numbers and lists must be copied"),
    (lambda: np.asarray(1).__array_namespace__(api_version="1999.1"), "api_version: is 1999.1"),
    (lambda: np.result_type(np.int64, np.float32), "result_type: int64 and float32 are of two kinds"),
])
def test_an_error_is_a_line_with_function_and_argument(call, line):
    with pytest.raises((TypeError, ValueError), match=line):
        call()


# ---- asarray ------------------------------------------------------------------------------------------------------------------------

def test_asarray_has_the_dtypes_of_the_standard():
    assert same(np.asarray([[1, 2], [3, 4]]), numpy.array([[1, 2], [3, 4]], "int64")) and np.asarray(3).dtype == np.int64
    assert np.asarray([1.5, 2]).dtype == np.float32 and np.asarray(True).dtype == np.bool and np.asarray([]).dtype == np.float32
    for dtype in ("bool", "int8", "uint16", "int64", "float16", "float64"):
        assert np.asarray(numpy.zeros(2, dtype)).dtype == dtype
    assert same(np.asarray([2 ** 53 + 1]), numpy.array([2 ** 53 + 1])) and same(np.asarray([1.7, -1.7], dtype=np.int8), numpy.array([1, -1], "int8"))
    assert same(np.asarray([0.1], dtype="float64"), [0.1])   # not by way of float32
    x = np.asarray([1, 2])
    assert same(np.asarray([x, x]), [[1, 2], [1, 2]]) and np.asarray(x) is x and np.asarray(x, dtype="int8").dtype == "int8"


def test_arrays_of_other_libraries():
    x = np.from_dlpack(X)
    assert same(x, X) and numpy.from_dlpack(x).tolist() == X.tolist() and same(np.from_dlpack(X, copy=True), X)
    assert numpy.asarray(np.asarray(I)).dtype == numpy.int64
    mine = X.copy()
    shared, copied = np.asarray(mine, copy=False), np.from_dlpack(mine, copy=True)
    mine[0, 0, 0] = 9
    assert float(shared[0, 0, 0]) == 9 and same(copied, X)
    with pytest.raises(ValueError, match="another dtype or device must be copied"):
        np.asarray(mine, dtype=np.float32, copy=False)


def test_numbers_are_real():
    assert same(np.real(X), X) and same(np.conj(np.asarray(X)), X) and same(np.imag(np.asarray(X)), numpy.zeros_like(X)) and same(np.reshape(X, (4, 6), copy=True), X.reshape(4, 6))


# ---- operators ----------------------------------------------------------------------------------------------------------------------

def test_operators_promote_and_compare():
    small, wide = np.asarray([1, 2], dtype="int8"), np.asarray([3, 2], dtype="int16")
    assert same(small + wide, numpy.array([4, 4], "int16")) and same(small == wide, [False, True]) and same(small != wide, [True, False])
    assert same(np.asarray([6, 3]) & 3, [2, 3]) and same(np.asarray([6, 3]) ^ 1, [7, 2]) and same(~np.asarray([6, 3]), [-7, -4])
    assert same(1 << np.asarray([1, 2]), [2, 4]) and same(np.asarray([8, 9]) >> 1, [4, 4]) and same(2 ** np.asarray([1, 2]), [2, 4])
    assert same(numpy.array([1, 2]) - np.asarray([3, 4]), [-2, -2]) and same(-np.asarray(X) // 2, -X // 2) and same(np.asarray(X) @ X[0].T, X @ X[0].T)
    x = np.asarray([1, 2], dtype="int8")
    x += 1
    assert same(x, numpy.array([2, 3], "int8")) and (x == None) is False and (x != "text") is True   # noqa: E711


def test_keras_operators_stay_keras():
    k, other = K.constant([1.0, 2.0]), K.constant([1.0, 2.0])
    assert (k == other) is False and k == k and k in [other, k] and not k.is_array
    with pytest.raises(TypeError):
        K.constant([1], dtype="int32") + K.constant([1], dtype="int64")
    with pytest.raises(TypeError):
        k << 1
    # What a function hands through is another object: Keras' tensor does not turn into an array.
    for hand_through in (np.positive, np.asarray, lambda x: np.reshape(x, (2,)), lambda x: np.astype(x, "float32")):
        a = hand_through(k)
        assert a is not k and a.is_array and not k.is_array and same(a == k, [True, True])
    assert not K.square(np.asarray([1.0])).is_array
    # Placeholders and variables are Keras', beside an array too.
    x, v = K.placeholder((2,)), K.variable([1.0, 2.0])
    assert (a + x).symbolic and (a == x) is False and K.eval(a + v).tolist() == [2, 4]
    f = K.function([x], [a * x])
    assert f([[3.0, 4.0]])[0].tolist() == [3, 8] and same(np.add(v, 1.0), numpy.array([2, 3], "float32"))


def test_gradients_pass_through_arrays():
    x = K.placeholder((2,))
    y = np.sum(np.exp(x) * 2.0)
    gradient = K.function([x], K.gradients(y, [x]))([[0.0, 1.0]])[0]
    numpy.testing.assert_allclose(gradient, [2, 2 * math.e], rtol=1e-6)


# ---- the class ----------------------------------------------------------------------------------------------------------------------

def test_numbers_of_arrays():
    assert float(np.asarray(2.5)) == 2.5 and int(np.asarray(-2.5)) == -2 and complex(np.asarray(2.5)) == 2.5 and [4, 5][np.asarray(1)] == 5
    assert int(np.asarray(2 ** 62 + 1)) == 2 ** 62 + 1 and bool(np.asarray(1)) and not bool(np.asarray(0.0))
    for wrong in (lambda: float(np.asarray([1.0, 2.0])), lambda: [4, 5][np.asarray(1.0)], lambda: int(np.asarray(math.inf)), lambda: float(K.placeholder(()))):
        with pytest.raises((TypeError, ValueError, OverflowError)):
            wrong()


def test_masks_and_several_indices():
    x, i = np.asarray(X), np.asarray([1, 0])
    assert same(x[x > 3], X[X > 3]) and same(x[:, X[0, :, 0] > -5], X[:, X[0, :, 0] > -5]) and same(x[i, :, i], X[[1, 0], :, [1, 0]]) and same(x[[1, 0, 1]], X[[1, 0, 1]])


@pytest.mark.parametrize("key, value", [
    (0, 5), ((1, 2), 7.5), (slice(None, None, -2), [[1], [2], [3]]), (..., 0), ((slice(None), 1), numpy.arange(4.0)), ([1, 0, 1], 3), ((0, [2, 0], slice(1, 3)), [[1, 2], [3, 4]]),
    (X > 3, -1), (X[:, 0, 0] > 0, 2), ((None, 0), 4), ((), 9), (X > 99, 1),
])
def test_elements_are_assigned(key, value):
    x, theirs = np.asarray(X), X.copy()
    x[key], theirs[key] = value, value
    assert same(x, theirs)
    y = np.asarray(X)
    y[key] = np.asarray(value, dtype="float32")
    assert same(y, theirs)


def test_an_array_whose_elements_are_assigned_is_another_tensor():
    x = np.asarray([1.0, 2.0, 3.0], dtype="float64")
    alias, row, memory, double = x, x[1:], numpy.asarray(x), x * 2
    table = {x: "x"}
    copies = [np.asarray(x, copy=True), np.positive(x), +x, np.reshape(x, (3,)), np.astype(x, "float64"), np.astype(x, "float64", copy=False)]
    x[1] = 20
    assert alias is x and same(x, [1.0, 20, 3]) and table[x] == "x" and same(x + 1, [2.0, 21, 4]) and same(row, [2.0, 3]) and same(double, [2.0, 4, 6])
    assert memory.tolist() == [1, 2, 3] and all(same(c, [1.0, 2, 3]) for c in copies)
    x[x > 2] += 1
    assert same(x, [1.0, 21, 4]) and np.asarray(x) is x and np.asarray(x, copy=False) is x


def test_what_cannot_be_assigned():
    x, k = np.asarray([1, 2]), K.constant([1.0, 2.0])
    for key, value, error in ((0, 0.5, "0.5"), (0, [1, 2], "broadcast"), (5, 1, "out of range"), (0, None, "None"), (0, np.asarray(1.0), "float32"), (0, K.placeholder(()), "symbolic")):
        with pytest.raises((TypeError, ValueError, IndexError), match=error):
            x[key] = value
    assert same(x, [1, 2])
    with pytest.raises(TypeError, match="K.update changes a variable"):
        k[0] = 3


def test_functions_by_hand():
    x = np.asarray(X[0])
    assert same(np.piecewise(x, [x < 0, x > 2], [lambda a: -a, 7]), numpy.piecewise(X[0], [X[0] < 0, X[0] > 2], [lambda a: -a, 7]))
    assert same(np.piecewise(x, [x < 0], [np.abs, lambda a: a * 2]), numpy.piecewise(X[0], [X[0] < 0], [numpy.abs, lambda a: a * 2]))
    for ours, theirs in ((np.nonzero(x), numpy.nonzero(X[0])), (np.unravel_index([3, 5], (2, 3)), numpy.unravel_index([3, 5], (2, 3))), (np.tril_indices(3), numpy.tril_indices(3))):
        assert isinstance(ours, tuple) and all(map(same, ours, theirs))
    counts, edges = np.histogramdd(np.asarray(X[0]), 2)
    theirs = numpy.histogramdd(X[0], 2)
    assert same(counts, theirs[0].astype("int64")) and all(same(ours, e) for ours, e in zip(edges, theirs[1]))
    assert np.promote_types("int8", "uint8") == "int16" and same(np.apply_over_axes(np.sum, np.asarray(X), (0, 2)), numpy.apply_over_axes(numpy.sum, X, (0, 2)))
    values, indices, inverse, counts = np.unique_all(np.asarray([3, 1, 3]))
    assert same(values, [1, 3]) and same(indices, [1, 0]) and same(inverse, [1, 0, 1]) and same(counts, [1, 2])


def test_attributes_of_the_standard():
    x = np.asarray(X)
    assert same(x.mT, X.mT if hasattr(X, "mT") else X.swapaxes(1, 2)) and same(x.T, X.T) and x.size == 24 and x.device == "cpu" and K.placeholder((None,)).size is None
    assert x.__array_namespace__() is np and x.__array_namespace__(api_version="2024.12") is np and same(x.to_device("cpu"), X)
    assert same(x[0, ..., ::-1], X[0, ..., ::-1]) and same(x[:, None, 1], X[:, None, 1]) and len(x) == 2 and same(next(iter(x)), X[0])
    with pytest.raises(ValueError):
        x.to_device("cpu", stream=1)


# ---- dtypes, inspection -------------------------------------------------------------------------------------------------------------

def test_dtypes_are_objects():
    assert np.float32 == "float32" == np.asarray(1.0).dtype and np.float32 != np.float64 and repr(np.int8) == "kassette.numpy.int8"
    assert {np.float32: 1}[np.asarray(1.0).dtype] == 1 and numpy.dtype(np.uint16) == numpy.uint16 and pickle.loads(pickle.dumps(np.int8)) == np.int8
    assert np.float32 == numpy.dtype("float32") and numpy.float32 == np.float32 and not isinstance(np.float32, str) and f"{np.float32}" == "float32"
    assert np.zeros(2, dtype=np.bfloat16).dtype == np.bfloat16 and np.isdtype(np.int8, np.zeros(1, dtype="int8").dtype) and K.cast(K.constant(1), np.int32).dtype == "int32"
    assert np.bool.itemsize == 1 and np.float64.itemsize == 8 and np.bfloat16.itemsize == 2


def test_promotion_is_that_of_the_standard():
    for a in np.__array_namespace_info__().dtypes().values():
        for b in np.__array_namespace_info__().dtypes().values():
            theirs = numpy.result_type(a, b).name
            if np.isdtype(a, "real floating") != np.isdtype(b, "real floating") or (a == "bool") != (b == "bool") or "uint64" in (a, b) and theirs == "float64":
                with pytest.raises(TypeError):
                    np.result_type(a, b)
                assert not np.can_cast(a, b)
            else:
                assert np.result_type(a, b) == theirs and np.can_cast(a, b) == (theirs == b)
                assert "bool" in (a, b) or (np.zeros(1, dtype=a) * np.zeros(1, dtype=b)).dtype == theirs
    assert np.result_type(np.asarray([1.0]), 2) == np.float32 and np.result_type(np.int8, 2, np.int16) == np.int16
    with pytest.raises(TypeError):
        np.result_type(np.int8, 2.5)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_finfo(dtype):
    ours, theirs = np.finfo(dtype), numpy.finfo(dtype)
    assert ours.dtype == dtype
    for name in ("bits", "eps", "max", "min", "smallest_normal"):
        assert getattr(ours, name) == getattr(theirs, name)


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint8", "uint16"])
def test_iinfo(dtype):
    ours, theirs = np.iinfo(np.zeros(1, dtype=dtype)), numpy.iinfo(dtype)
    assert (ours.bits, ours.min, ours.max, ours.dtype) == (theirs.bits, theirs.min, theirs.max, dtype)


def test_inspection():
    info = np.__array_namespace_info__()
    assert np.__array_api_version__ == "2024.12" and info.default_device() in info.devices() and info.default_dtypes()["integral"] == np.int64
    assert set(info.dtypes(kind="real floating")) == {"float32", "float64"} and set(info.dtypes(kind=("bool", "signed integer"))) == {"bool", "int8", "int16", "int32", "int64"}
    assert info.capabilities()["max dimensions"] == 8 and np.isdtype(np.int8, ("bool", "integral")) and not np.isdtype(np.float16, np.float32)
    assert np.pi == math.pi and np.newaxis is None and math.isnan(np.nan) and np.inf == math.inf and kassette.numpy is np
