"""The rows of np, np::fft and np::linalg (ours/numpy.cpp, ours/kernels.cpp) for the libraries that have NumPy's names."""

import functools

import inputs
import numpy as np
import timer

MILLION, MANY = 1000000, 10000000


def make_definite(shape):
    x = inputs.uniform(*shape)
    return x @ x.swapaxes(-1, -2) + x.shape[-1] * np.eye(x.shape[-1], dtype=x.dtype)


def add(xp, operation, *, cdist, top_k, erf, set_one, add_at, segment_sum, masks):
    """`operation(f, *arrays)` returns what calls f with arrays of the library. Without `masks`, results have no sizes
    that depend on values."""

    def row(name, f, *make):
        timer.row(name, lambda: operation(f, *[m() for m in make]))

    def uniform(*shape):
        return lambda: inputs.uniform(*shape)

    def chosen(n):
        return lambda: inputs.uniform(n) > 0.6

    def places(most, n):
        return lambda: inputs.integers(most, n)

    row("np.sort.1e6", xp.sort, uniform(MILLION))
    row("np.sort_i32.1e6", xp.sort, places(1 << 30, MILLION))
    row("np.argsort.1e6", xp.argsort, uniform(MILLION))
    row("np.sort.rows1000", xp.sort, uniform(1000, 1000))
    row("np.argsort.rows1000", xp.argsort, uniform(1000, 1000))
    row("np.top_k10.1000x1e4", top_k, uniform(1000, 10000))
    row("np.take.1e6", xp.take, uniform(MILLION), places(MILLION, MILLION))
    if masks:
        row("np.mask.1e6", lambda x, m: x[m], uniform(MILLION), chosen(MILLION))
    row("np.scatter_add.1e6", add_at, uniform(MILLION), places(MILLION, MILLION), uniform(MILLION))
    row(
        "np.segment_sum.1e6",
        segment_sum,
        uniform(MILLION),
        lambda: np.sort(inputs.integers(1000, MILLION)),
    )
    row("np.cumsum.1e6", xp.cumsum, uniform(MILLION))
    row("np.where.1e7", xp.where, chosen(MANY), uniform(MANY), uniform(MANY))
    row("np.floor.1e7", xp.floor, lambda: inputs.uniform(MANY) * np.float32(10))
    row("np.erf.1e7", erf, uniform(MANY))
    row("np.arctan2.1e7", xp.arctan2, uniform(MANY), uniform(MANY))
    row("small.where", xp.where, chosen(4), uniform(4), uniform(4))
    row("small.take", xp.take, uniform(4), places(4, 4))
    row("small.at_set", set_one, uniform(4), uniform(1))
    batch = uniform(64, 64, 64)
    row("np.matmul.64x64x64", xp.matmul, batch, batch)
    row("np.einsum.64x64x64", lambda a, b: xp.einsum("bij,bjk->bik", a, b), batch, batch)
    if cdist:
        for tag, n, width in (("1000x1000x64", 1000, 64), ("3000x3000x3", 3000, 3)):
            row(f"np.cdist.{tag}", cdist, uniform(n, width), uniform(n, width))
    for tag, shape in (("64", (64, 64)), ("512", (512, 512)), ("4096x8x8", (4096, 8, 8))):
        spd = functools.partial(make_definite, shape)
        row(f"la.solve.{tag}", xp.linalg.solve, spd, uniform(*shape))
        row(f"la.cholesky.{tag}", xp.linalg.cholesky, spd)
        row(f"la.eigh.{tag}", xp.linalg.eigh, spd)
        row(f"la.svd.{tag}", xp.linalg.svd, uniform(*shape))
    for name, f, shape, complex_ in (
        ("2e20", xp.fft.fft, (1 << 20,), True),
        ("r2e20", xp.fft.rfft, (1 << 20,), False),
        ("rows1000", xp.fft.fft, (1000, 1000), True),
        ("rrows1000", xp.fft.rfft, (1000, 1000), False),
        ("both1000", xp.fft.fft2, (1000, 1000), True),
        ("prime1009", xp.fft.fft, (1009, 1009), True),
    ):
        dtype = "complex64" if complex_ else "float32"
        row(f"fft.{name}", f, lambda s=shape, d=dtype: inputs.uniform(*s).astype(d))
