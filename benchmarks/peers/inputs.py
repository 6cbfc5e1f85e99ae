"""What the rows of several Python peers are measured on, as NumPy arrays; the sizes are those of ours/bench.cpp."""

import numpy as np

LENGTHS = ((1000, "1e3"), (100000, "1e5"), (10000000, "1e7"))
PRODUCTS = {  # mm.<name>: the shapes of the operands
    "sq64": ((64, 64), (64, 64)),
    "sq128": ((128, 128), (128, 128)),
    "sq256": ((256, 256), (256, 256)),
    "sq512": ((512, 512), (512, 512)),
    "sq1024": ((1024, 1024), (1024, 1024)),
    "tall": ((4096, 64), (64, 4096)),
    "inner": ((64, 4096), (4096, 64)),
    "m32_k64_n128": ((32, 64), (64, 128)),
    "gemv4096": ((4096, 4096), (4096,)),
    "batched64": ((64, 64, 64), (64, 64, 64)),
    "dot_2d": ((2048, 256), (256, 256)),
    "dot_3d": ((32, 64, 256), (256, 256)),
}

rng = np.random.default_rng(1)


def uniform(*shape):
    return rng.random(shape, dtype=np.float32) + np.float32(0.1)


def weights(m, n):
    return rng.standard_normal((m, n)).astype(np.float32) * np.float32(0.05)


def integers(most, *shape):
    return rng.integers(0, most, shape).astype(np.int32)
