"""Writes tests/data/order_cases.txt: what NumPy makes of given arrays.

    {python of NumPy} make_order_cases.py > order_cases.txt

A line has parts between bars, each of numbers: function, dtype and its two arguments; the shape and elements of the array; the
shape and elements of the result. For searchsorted the values stand between them. NumPy has no descending order: it is the stable
order of the complements of integers and of the negatives of floats, so that NaN comes last. NumPy has no bfloat16 either: the
numbers are such that it holds them.
"""
import numpy as np

rng = np.random.RandomState(3)
INTEGERS = ["uint8", "uint16", "int8", "int16", "int32", "int64"]
LATER = ["uint32", "uint64"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]


def held(dtype):
    return "float32" if dtype == "bfloat16" else dtype


def text(a):
    return " ".join("%.17g" % v if a.dtype.kind == "f" else "%d" % v for v in a.ravel())


def parts(*arrays):
    return " | ".join(" ".join(map(str, a.shape)) + " | " + text(a) for a in arrays)


def elements(shape, dtype):
    """Few different numbers, so that many are equal, and all special ones."""
    n = int(np.prod(shape))
    if dtype == "bool":
        return rng.randint(0, 2, n).astype(bool).reshape(shape)
    if dtype in INTEGERS + LATER:
        info = np.iinfo(dtype)
        pool = [info.min, info.max, 0, 1, 2, 3, info.max // 2, info.min // 2]
        return np.array(pool, dtype)[rng.randint(0, len(pool), n)].reshape(shape)
    pool = [0.0, -0.0, np.nan, np.inf, -np.inf, 1.0, -1.0, 0.5, -2.5, 384.0, 2.0**-14]
    return np.array(pool, held(dtype))[rng.randint(0, len(pool), n)].reshape(shape)


def order(x, axis, descending):
    if descending:
        x = ~x if x.dtype.kind in "biu" else -x
    return np.argsort(x, axis, kind="stable")


print("# made by make_order_cases.py with NumPy", np.__version__)
for dtype in ["bool"] + INTEGERS + FLOATS + LATER:  # added later: the draws of the others stay
    for shape, axis in [((7,), 0), ((3, 60), -1), ((4, 3), 0), ((2, 5, 3), 1), ((2, 3, 2, 2, 4), -3), ((0, 3), 0), ((1, 1), -2), ((90,), -1)]:
        for descending in (0, 1):
            x = elements(shape, dtype)
            at = order(x, axis, descending)
            print("sort", dtype, axis, descending, "|", parts(x, np.take_along_axis(x, at, axis)))
            print("argsort", dtype, axis, descending, "|", parts(x, at))
        if x.size:
            for k in {0, 1, (x.shape[axis] + 1) // 2, x.shape[axis]}:
                print("top_k", dtype, axis, k, "|", parts(x, np.take(at, range(k), axis)))
    for n in (0, 1, 9):
        a = np.sort(elements((n,), dtype))
        v = elements((2, 5), dtype)
        for right in (0, 1):
            print("searchsorted", dtype, right, 0, "|", parts(a, v, np.searchsorted(a, v, "right" if right else "left")))
