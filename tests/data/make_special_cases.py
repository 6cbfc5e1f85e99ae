#!/usr/bin/env python3
"""Writes tests/data/special_cases.txt: values of the elementwise functions of numerical code.

    python make_special_cases.py > special_cases.txt        (needs NumPy and mpmath)

A line is `function x [y] value` with hexadecimal floats. At the edges (zeros, infinities, NaN, huge and tiny numbers) and
for pairs of them the values are NumPy's in float64; elsewhere mpmath's at 50 digits, rounded to float64 once.
"""

import math
import random

import numpy as np
from mpmath import mp, mpf

mp.dps = 50
rng = random.Random(5)

inf, nan = math.inf, math.nan
EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 2.5, -3.5, 0.25, inf, -inf, nan]
EDGES += [2.0**-120, -(2.0**-120), 2.0**-140, 2.0**100, -(2.0**100), 2.0**127]
FAR = [5e-324, -5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, -1.7976931348623157e308, 1e-300, 1e300]
PAIRS = [0.0, -0.0, 1.0, -1.0, 2.5, -2.5, inf, -inf, nan, 2.0**-140, 2.0**126, -(2.0**126)]


def number(v):
    v = float(v)
    if not math.isfinite(v):
        return str(v)
    digits, exponent = v.hex().split("p")
    return digits.rstrip("0").rstrip(".") + "p" + exponent


def emit(name, *numbers):
    print(name, *map(number, numbers))


def single(v):
    return float(np.float32(v))


def spread(low, high, n):
    """Numbers that float32 has, and as many that it has not."""
    values = [rng.uniform(low, high) for _ in range(n)]
    return [single(v) for v in values] + values


def unary(name, exact, low, high, peer=None, edges=EDGES + FAR, n=20):
    peer = peer or getattr(np, name)
    with np.errstate(all="ignore"):
        for x in edges:
            emit(name, x, peer(np.float64(x)))
    for x in spread(low, high, n):
        emit(name, x, exact(mpf(x)))


def binary(name, exact, a, b, peer=None, n=20):
    peer = peer or getattr(np, name)
    with np.errstate(all="ignore"):
        for x in PAIRS:
            for y in PAIRS:
                emit(name, x, y, peer(np.float64(x), np.float64(y)))
    for x, y in zip(spread(*a, n), spread(*b, n)):
        emit(name, x, y, exact(mpf(x), mpf(y)))


def truncated(x):
    return mp.floor(x) if x > 0 else mp.ceil(x)


# ---- rounding
for name, exact in {"floor": mp.floor, "ceil": mp.ceil, "trunc": truncated, "rint": mp.nint}.items():
    unary(name, lambda x: math.copysign(exact(x), x), -9, 9)  # mpmath has no -0
# ---- angles
unary("tan", mp.tan, -1e4, 1e4)
unary("asin", mp.asin, -1, 1, np.arcsin)
unary("acos", mp.acos, -1, 1, np.arccos)
unary("atan", mp.atan, -4, 4, np.arctan)
binary("atan2", mp.atan2, (-3, 3), (-3, 3), np.arctan2)
binary("hypot", mp.hypot, (-3, 3), (-3, 3))
# ---- hyperbolic functions
unary("sinh", mp.sinh, -80, 80)
unary("cosh", mp.cosh, -80, 80)
unary("asinh", mp.asinh, -40, 40, np.arcsinh)
unary("acosh", mp.acosh, 1, 40, np.arccosh)
unary("atanh", mp.atanh, -1, 1, np.arctanh)
# ---- other bases, roots
unary("exp2", lambda x: mpf(2) ** x, -120, 120)
unary("log2", lambda x: mp.log(x) / mp.log(2), 0, 40)
unary("log10", mp.log10, 0, 40)
for k in range(-30, 31):
    emit("log2", mpf(2) ** k, k)
for k in range(0, 23):
    emit("log10", mpf(10) ** k, k)
unary("cbrt", lambda x: mp.cbrt(x) if x >= 0 else -mp.cbrt(-x), -40, 40)
binary("logaddexp", lambda x, y: mp.log(mp.exp(x) + mp.exp(y)), (-30, 30), (-30, 30))
binary("logaddexp2", lambda x, y: mp.log(mpf(2) ** x + mpf(2) ** y) / mp.log(2), (-30, 30), (-30, 30))
# ---- signs and remainders
binary("copysign", lambda x, y: abs(x) if y > 0 else -abs(x), (-3, 3), (-3, 3))
binary("fmod", lambda x, y: x - y * truncated(x / y), (-1e3, 1e3), (-3, 3))
