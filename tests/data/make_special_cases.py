#!/usr/bin/env python3
"""Writes tests/data/special_cases.txt: values of the elementwise functions of numerical code.

    python make_special_cases.py > special_cases.txt             (needs NumPy, SciPy and mpmath)
    python make_special_cases.py integers > special_integers.txt
    python make_special_cases.py betainc > betainc_cases.txt

A line is `function x [y] value` with hexadecimal floats. At the edges (zeros, infinities, NaN, huge and tiny numbers) and
for pairs of them the values are NumPy's in float64; elsewhere mpmath's at 50 digits, rounded to float64 once.
"""

import math
import random
import sys

import numpy as np
from mpmath import mp, mpf
from scipy import special

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


def gamma_lower(a, x):
    """The regularized lower incomplete gamma function by its series, which converges everywhere."""
    term = total = mpf(1)
    n = 0
    while term > total * mpf(10) ** -mp.dps or n < x - a:
        n += 1
        term *= x / (a + n)
        total += term
    return total * mp.exp(a * mp.log(x) - x - mp.loggamma(a + 1))


def beta_lower(a, b, x):
    """The regularized incomplete beta function by a series of positive terms."""
    term = total = mpf(1)
    n = 0
    while term > total * mpf(10) ** -30 or (a + b + n) * x > a + n:
        term *= (a + b + n) / (a + 1 + n) * x
        total += term
        n += 1
    return total * mp.exp(a * mp.log(x) + b * mp.log(1 - x) + mp.loggamma(a + b) - mp.loggamma(a + 1) - mp.loggamma(b))


def integers():
    """Lines `function dtype a b value`; those of bitwise_invert have a 0 as b."""
    for dtype in "int8", "uint8", "int32", "int64", "uint32", "uint64":
        info = np.iinfo(dtype)
        numbers = sorted({0, 1, 2, 3, 12, 18, 60, 100, info.max, info.max - 1, info.min, info.min + 1} | ({-1, -4, -18} if info.min else set()))
        for a in numbers:
            print("bitwise_invert", dtype, a, 0, np.invert(np.array(a, dtype)))
            for b in numbers:
                for name in "gcd", "lcm", "bitwise_and", "bitwise_or", "bitwise_xor", "fmod":
                    if name == "fmod" and b in (0, -1):
                        continue  # an error here; NumPy warns
                    if name in ("gcd", "lcm") and info.min < 0 and info.min in (a, b):
                        continue  # overflows
                    with np.errstate(all="ignore"):
                        print(name, dtype, a, b, getattr(np, name)(np.array(a, dtype), np.array(b, dtype)))
            for b in 0, 1, 2, 5, 7, 8, 31, 32, 63, 64, 100:
                for name in "left_shift", "right_shift":
                    print(name, dtype, a, b, getattr(np, name)(np.array(a, dtype), np.array(b, dtype)))


def betainc():
    """Lines `a b x value`: SciPy's at the edges, mpmath's elsewhere."""
    for a in [0.0, 0.5, 2.0]:
        for b in [0.0, 0.25, 3.0]:
            for x in [0.0, 1.0, 0.5, -0.5, 1.5, nan]:
                emit("", a, b, x, special.betainc(a, b, x))
    # Around the mean, and far from it.
    for a in [1e-3, 0.3, 1.0, 2.5, 30.0, 1e3, 1e5]:
        for b in [1e-2, 0.7, 1.0, 4.0, 50.0, 2e4]:
            mean, spread_of = a / (a + b), math.sqrt(a * b / (a + b + 1)) / (a + b)
            for x in [0.01, 0.3, 0.5, 0.8, 0.97, mean, mean - 2 * spread_of, mean + 3 * spread_of]:
                if 0 < x < min(1, mean + 30 * spread_of):
                    value = beta_lower(mpf(a), mpf(b), mpf(x))
                    if value > 1e-290:
                        emit("", a, b, x, value)


def floats():
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
    # ---- error and gamma functions, by SciPy at the edges
    unary("erf", mp.erf, -4, 4, special.erf)
    unary("erfc", mp.erfc, -3, 26, special.erfc)
    for x in spread(3, 10, 20):
        emit("erfc", x, mp.erfc(mpf(x)))
    odd = [x for x in EDGES + FAR if x or math.copysign(1, x) > 0]  # SciPy's functions give 0 at -0
    unary("erfinv", mp.erfinv, -1, 1, special.erfinv, edges=odd)
    for k in range(1, 52):
        emit("erfinv", 1 - 2.0**-k, mp.erfinv(mpf(1) - mpf(2) ** -k))
    log_gamma = lambda x: mp.loggamma(x) if x > 0 else mp.log(abs(mp.gamma(x)))
    unary("lgamma", log_gamma, 0, 30, special.gammaln, edges=[x for x in EDGES + FAR if x != -inf and abs(x) != 5e-324])
    for x in spread(-0.9, 3, 40) + spread(30, 1e6, 20) + [1 + 2.0**-20, 1 - 2.0**-20, 2 + 2.0**-20, 2 - 2.0**-20]:
        emit("lgamma", x, log_gamma(mpf(x)))
    for n in range(4):
        unary(f"polygamma{n}", lambda x: mp.polygamma(n, x), 0, 30, lambda x: special.polygamma(n, x),
              edges=[0.5, 1.0, 2.0, 2.5, 0.25, inf, nan, 2.0**100])
        for x in spread(-8, 0, 20) + spread(1.3, 1.6, 10) + spread(30, 1e6, 10):
            emit(f"polygamma{n}", x, mp.polygamma(n, mpf(x)))
    emit("polygamma0", 0.0, special.digamma(0.0))
    emit("polygamma0", -0.0, special.digamma(-0.0))
    emit("polygamma0", -3.0, special.digamma(-3.0))
    emit("polygamma1", 0.0, inf)
    emit("polygamma1", -2.0, special.polygamma(1, -2.0))
    # ---- incomplete gamma functions
    gamma_pairs = [(a, x) for a in [0.0, 0.5, 1.0, 30.0, inf, nan, -1.0] for x in [0.0, 1.0, 40.0, inf, nan, -1.0]]
    for a, x in gamma_pairs:
        for name in "gammainc", "gammaincc":
            emit(name, a, x, getattr(special, name)(a, x))
    gamma_pairs = [(single(a), single(a * f)) for a in [1e-3, 0.1, 0.7, 1.5, 5, 9.5, 25, 170, 1e3, 1e5]
                   for f in [0.2, 0.7, 0.9, 0.99, 1.01, 1.1, 1.5, 3]]
    gamma_pairs += [(single(10.0 ** rng.uniform(-3, 2)), single(10.0 ** rng.uniform(-3, 2))) for _ in range(60)]
    gamma_pairs += [(4194304.0, 4194304.0 + d) for d in [-8192, -1024, -1, 0, 1, 512, 4096, 16384]]
    mp.dps = 350  # for 1 - lower
    for a, x in gamma_pairs:
        lower = gamma_lower(mpf(a), mpf(x))
        emit("gammainc", a, x, lower)
        emit("gammaincc", a, x, abs(1 - lower))
    mp.dps = 50
    # ---- Bessel functions
    for order, name in enumerate(["i0", "i1"]):
        unary(name, lambda x: mp.besseli(order, x), -60, 60, getattr(special, name), edges=[x for x in odd if not math.isinf(x)])
    for x in [inf, -inf]:  # the limits; SciPy gives NaN
        emit("i0", x, inf)
        emit("i1", x, x)
    for x in spread(-9, 9, 20) + [700.0, 713.0, 715.0, 88.0]:
        emit("i0", x, mp.besseli(0, x))
        emit("i1", x, mp.besseli(1, x))
    unary("sinc", mp.sincpi, -9, 9, edges=[0.0, -0.0, 0.5, 2.5, inf, -inf, nan, 0.25, 2.0**-120])
    emit("sinc", 1.0, 0.0)
    emit("sinc", -1.0, 0.0)
    emit("sinc", 3.0, 0.0)
    # ---- parts of numbers
    unary("modf_fraction", lambda x: x - truncated(x), -9, 9, lambda x: np.modf(x)[0])
    unary("frexp_exponent", lambda x: np.frexp(float(x))[1], -9, 9, lambda x: np.frexp(x)[1])
    binary("heaviside", lambda x, y: 0 if x < 0 else 1, (-3, 3), (-3, 3))
    binary("fmax", max, (-3, 3), (-3, 3))
    binary("fmin", min, (-3, 3), (-3, 3))
    with np.errstate(all="ignore"):
        for x in EDGES + FAR:
            for n in [0, 1, -1, 10, -20, 120, -130, 1000, -1000, 2000, -2000, 3000]:
                emit("ldexp", x, n, np.ldexp(x, n))


if __name__ == "__main__":
    {"integers": integers, "betainc": betainc}.get(sys.argv[1] if len(sys.argv) > 1 else "", floats)()
