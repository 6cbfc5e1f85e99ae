"""Writes tests/data/unsigned_cases.txt: what NumPy makes of uint32 and uint64.

    {python of NumPy} make_unsigned_cases.py > unsigned_cases.txt

A line has parts between bars: function, dtype of the arguments and dtype of the result; the numbers of each argument; the numbers of
the result. Functions of two arguments are of all pairs, but for matmul, of (2, 3) by (3, 2).
"""
import numpy as np

NUMBERS = {
    "uint32": [0, 1, 2, 3, 7, 10, 255, 256, 12345, 65535, 65536, 2**31 - 1, 2**31, 2**31 + 1, 2**32 - 129, 2**32 - 128, 2**32 - 2, 2**32 - 1],
    "uint64": [0, 1, 2, 3, 7, 10, 255, 65536, 2**31, 2**32 - 1, 2**32, 2**52 + 1, 2**53, 2**53 + 1, 2**62, 2**63 - 1, 2**63, 2**63 + 1,
               2**63 + 1024, 2**63 + 1025, 2**63 + 3072, 2**63 + 2**39, 2**63 + 2**39 + 1, 2**64 - 2**39, 2**64 - 2**39 - 1, 2**64 - 2049,
               2**64 - 1025, 2**64 - 1024, 2**64 - 2, 2**64 - 1],
}


def text(a):
    return " ".join("%.17g" % v if a.dtype.kind == "f" else "%d" % v for v in a.ravel())


def line(name, dtype, result, *arguments):
    print(name, dtype, result.dtype, "|", " | ".join(map(text, arguments + (result,))))


print("# made by make_unsigned_cases.py with NumPy", np.__version__)
for dtype, numbers in NUMBERS.items():
    x = np.array(numbers, dtype)
    rng = np.random.RandomState(5)
    many = rng.randint(0, np.iinfo(dtype).max, 100, dtype)
    with np.errstate(all="ignore"):
        a, b = x[:, None], x
        for name in ["add", "subtract", "multiply", "maximum", "minimum", "power", "less", "less_equal", "greater", "greater_equal", "equal",
                     "not_equal"]:
            line(name, dtype, getattr(np, name)(a, b), a, b)
        for name in ["floor_divide", "remainder", "true_divide"]:  # the first number is 0
            line(name, dtype, getattr(np, name)(a, b[1:]), a, b[1:])
        for name in ["negative", "abs", "sign", "square"]:
            line(name, dtype, getattr(np, name)(x), x)
        for v in x, x[::-1], many:
            for name in ["sum", "prod", "cumsum", "cumprod"]:
                line(name, dtype, getattr(np, name)(v, dtype=dtype), v)
            for name in ["max", "min", "argmax", "argmin"]:
                line(name, dtype, getattr(np, name)(v), v)
            line("mean", dtype, np.asarray(np.mean(v.astype(np.longdouble)), "float64"), v)
        p, q = many[:6], many[6:12]
        line("matmul", dtype, p.reshape(2, 3) @ q.reshape(3, 2), p, q)
        for to in ["bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float32", "float64"]:
            for v in x, many:
                line("cast", dtype, v.astype(to), v)
        for small in ["bool", "uint8", "uint16", "uint32", "int8", "int16", "int32", "int64"]:
            v = np.array([0, 1] if small == "bool" else [0, 1, 5, np.iinfo(small).max, np.iinfo(small).min, np.iinfo(small).min + 1], small)
            line("cast", small, v.astype(dtype), v)
        for floats in ["float32", "float64"]:  # those that fit: beyond them C has no rule
            v = np.array([0, 0.5, 0.99, 1, 1.5, 2.5, 255.75, 65536.5, 2.0**31 - 1, 2.0**31, 2.0**31 + 256.5, 2.0**32 - 256], floats)
            if dtype == "uint64":
                v = np.concatenate([v, np.array([2.0**32, 2.0**53, 2.0**63, 2.0**63 + 2.0**40, 2.0**64 - 2.0**40], floats)])
            line("cast", floats, v.astype(dtype), v)
