#!/usr/bin/env python3
"""Prints the minimax polynomials of ops/math/simd_elementary.h; needs mpmath.

Each is found by Remez exchange at 60 digits for the error relative to the function that it is a part of, then rounded
coefficient by coefficient to the dtype. The number after `//` is the error, in powers of two, before and after rounding.
"""

import struct
import sys

from mpmath import mp, mpf

mp.dps = 60


def rounded(x, digits):
    """x rounded to so many binary digits, ties to even."""
    if x == 0:
        return x
    m, e = mp.frexp(x)
    scaled = mp.nint(m * mpf(2) ** digits)
    return scaled * mpf(2) ** (e - digits)


def value(c, x):
    total = mpf(0)
    for a in reversed(c):
        total = total * x + a
    return total


def remez(f, weight, low, high, degree):
    """Coefficients of the polynomial p that minimises max |weight (p - f)|."""
    n = degree + 2
    low, high = mpf(low), mpf(high)
    nodes = [(low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * k / (n - 1)) for k in range(n)]
    for _ in range(12):
        a = mp.matrix(n, n)
        b = mp.matrix(n, 1)
        for i, x in enumerate(nodes):
            for j in range(degree + 1):
                a[i, j] = x**j
            a[i, n - 1] = (-1) ** i / weight(x)
            b[i] = f(x)
        solved = mp.lu_solve(a, b)
        c = [solved[j] for j in range(degree + 1)]
        points = 12 * n
        grid = [(low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * k / points) for k in range(points + 1)]
        errors = [weight(x) * (value(c, x) - f(x)) for x in grid]
        found = []
        for i, e in enumerate(errors):  # the largest error of each sign in turn
            if found and (errors[found[-1]] > 0) == (e > 0):
                if abs(e) > abs(errors[found[-1]]):
                    found[-1] = i
            else:
                found.append(i)
        while len(found) > n:
            found.pop(0 if abs(errors[found[0]]) < abs(errors[found[-1]]) else -1)
        if len(found) < n:
            break
        new = []
        for i in found:
            if 0 < i < points:  # the vertex of the parabola through three points
                x0, x1, x2 = grid[i - 1 : i + 2]
                e0, e1, e2 = errors[i - 1 : i + 2]
                d = (x1 - x0) * (e1 - e2) - (x1 - x2) * (e1 - e0)
                x = x1 - ((x1 - x0) ** 2 * (e1 - e2) - (x1 - x2) ** 2 * (e1 - e0)) / (2 * d) if d else x1
                new.append(x if x0 < x < x2 else x1)
            else:
                new.append(grid[i])
        sizes = [abs(errors[i]) for i in found]
        nodes = new
        if max(sizes) < min(sizes) * mpf("1.01"):
            break
    return c


def literal(x, dtype):
    """x as C++ writes it, without trailing zeros."""
    digits, exponent = float(x).hex().split("p")
    return digits.rstrip("0") + "p" + exponent + ("f" if dtype == "float" else "")


def print_one(name, f, weight, low, high, degree, dtype):
    digits = 24 if dtype == "float" else 53
    c = remez(f, weight, low, high, degree)
    r = [rounded(x, digits) for x in c]
    grid = [mpf(low) + (mpf(high) - mpf(low)) * k / 400 for k in range(401)]
    before, after = (mp.log(max(abs(weight(x) * (value(p, x) - f(x))) for x in grid), 2) for p in (c, r))
    text = ", ".join(literal(x, dtype) for x in r)
    print(f"  // {name}, {dtype}: 2^{float(before):.1f}, rounded 2^{float(after):.1f}")
    print(f"  static constexpr {dtype} {name}[] = {{{text}}};")
    sys.stdout.flush()


def near_zero(f, series, switch="1e-9"):
    """f, by its series (coefficients at 0) where it would cancel."""
    return lambda z: value(series, z) if abs(z) < mpf(switch) else f(z)


# (asin(s) - s) / s^3 in z = s^2 up to 1/4
asin_part = near_zero(lambda z: (mp.asin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, [mpf(1) / 6, mpf(3) / 40, mpf(15) / 336])
# (atan(s) - s) / s^3 in z = s^2 up to 0.56^2
atan_part = near_zero(lambda z: (mp.atan(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, [-mpf(1) / 3, mpf(1) / 5, -mpf(1) / 7])
# (sinh(s) - s) / s^3 in z = s^2 up to 1
sinh_part = near_zero(lambda z: (mp.sinh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, [mpf(1) / 6, mpf(1) / 120, mpf(1) / 5040])
cbrt = lambda x: mp.cbrt(x)



def erfcx_part(t):
    """(1 + 2 x) exp(x^2) erfc(x) in t = (x - 3.75) / (x + 3.75)."""
    x = mpf("3.75") * (1 + t) / (1 - t)
    return (1 + 2 * x) * mp.exp(x * x) * mp.erfc(x)


def erfinv_part(w):
    """erfinv(x) / x in w = -log(1 - x^2)."""
    if w < mpf("1e-20"):
        return mp.sqrt(mp.pi) / 2
    x = mp.sqrt(-mp.expm1(-w))
    return mp.erfinv(x) / x


def shifted(f, by):
    return lambda u: f(u + by)


def lgamma_part(u):
    """lgamma(2 + u) / (u (u + 1))."""
    if abs(u) < mpf("1e-25"):
        return 1 - mp.euler
    if abs(u + 1) < mpf("1e-25"):
        return mp.euler
    return mp.loggamma(2 + u) / (u * (u + 1))


ROOT = mp.findroot(mp.digamma, mpf("1.4616321449683623"))


def digamma_part(u):
    """digamma(y) / (y - its root) in u = y - 1.5."""
    y = u + mpf("1.5")
    return mp.polygamma(1, ROOT) if abs(y - ROOT) < mpf("1e-25") else mp.digamma(y) / (y - ROOT)


def bessel_far(n):
    """exp(-x) sqrt(x) I_n(x) in t = 16 / x - 1."""

    def f(t):
        if t + 1 < mpf("1e-8"):
            return 1 / mp.sqrt(2 * mp.pi)
        x = 16 / (t + 1)
        return mp.exp(-x) * mp.sqrt(x) * mp.besseli(n, x)

    return f


erf_part = near_zero(lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1, [2 / mp.sqrt(mp.pi) - 1])
bessel0 = lambda z: mp.besseli(0, 2 * mp.sqrt(z))  # in z = (x / 2)^2 up to 16
bessel1 = near_zero(lambda z: mp.besseli(1, 2 * mp.sqrt(z)) / (2 * mp.sqrt(z)), [mpf(1) / 2])
relative = lambda f: lambda x: 1 / f(x)

# name: function, weight of its error, from, to, degree for each dtype
TABLE = {
    "kAsin": (asin_part, lambda z: z, "1e-7", "0.2501", {"float": 4, "double": 12}),
    "kAtan": (atan_part, lambda z: z, "1e-7", "0.3137", {"float": 5, "double": 13}),
    "kSinh": (sinh_part, lambda z: z, "1e-7", "1.001", {"float": 3, "double": 7}),
    "kCbrt": (cbrt, lambda x: 1 / cbrt(x), "0.7071", "1.4143", {"float": 4, "double": 5}),
    "kErf": (erf_part, lambda z: mpf(1), 0, "1.001", {"float": 6, "double": 12}),
    "kErfcx": (erfcx_part, relative(erfcx_part), "-0.766", "0.765", {"float": 10, "double": 21}),
    "kErfinv": (shifted(erfinv_part, mpf("3.125")), relative(shifted(erfinv_part, mpf("3.125"))), "-3.125", "3.126",
                {"float": 10, "double": 23}),
    "kErfinvFar": (lambda u: erfinv_part((u + mpf("3.25")) ** 2), lambda u: 1 / erfinv_part((u + mpf("3.25")) ** 2),
                   "-0.751", "0.861", {"float": 8, "double": 19}),
    "kErfinvEnd": (lambda u: erfinv_part((u + 5) ** 2), lambda u: 1 / erfinv_part((u + 5) ** 2), "-1.001", "1.1",
                   {"double": 17}),
    "kLgamma": (lgamma_part, relative(lgamma_part), -1, 1, {"float": 12, "double": 27}),
    "kDigamma": (digamma_part, relative(digamma_part), "-0.5", "0.5", {"float": 10, "double": 21}),
    "kBessel0": (bessel0, relative(bessel0), 0, 16, {"float": 9, "double": 15}),
    "kBessel0Far": (bessel_far(0), relative(bessel_far(0)), -1, 1, {"float": 6, "double": 24}),
    "kBessel1": (bessel1, relative(bessel1), 0, 16, {"float": 9, "double": 15}),
    "kBessel1Far": (bessel_far(1), relative(bessel_far(1)), -1, 1, {"float": 6, "double": 24}),
}

if __name__ == "__main__":
    for name in sys.argv[1:] or TABLE:
        f, weight, low, high, degrees = TABLE[name]
        for dtype, degree in degrees.items():
            print_one(name, f, weight, low, high, degree, dtype)
