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
CONVOLUTIONS = {  # conv.<name>: x, channels last; the kernel as Keras has it; the stride
    "c3x3_56x64": ((8, 56, 56, 64), (3, 3, 64, 64), 1),
    "c3x3_56x64_n1": ((1, 56, 56, 64), (3, 3, 64, 64), 1),
    "c3x3_56x64_n64": ((64, 56, 56, 64), (3, 3, 64, 64), 1),
    "c7x7_112x3": ((8, 112, 112, 3), (7, 7, 3, 64), 2),
    "c3x3_28x128": ((8, 28, 28, 128), (3, 3, 128, 128), 1),
    "c1x1_14x256": ((8, 14, 14, 256), (1, 1, 256, 1024), 1),
    "dw3x3_56x64": ((8, 56, 56, 64), (3, 3, 64, 1), 1),  # depthwise
    "c1d_k5": ((32, 1000, 64), (5, 64, 128), 1),  # causal; "same" where the channels are first
    "c3d_k3": ((2, 16, 56, 56, 16), (3, 3, 3, 16, 32), 1),
    "t4x4_28x64": ((8, 28, 28, 64), (4, 4, 32, 64), 2),  # transposed
}
IMAGES = (8, 56, 56, 64)  # of the rows pool.*

rng = np.random.default_rng(1)


def uniform(*shape):
    return rng.random(shape, dtype=np.float32) + np.float32(0.1)


def channels_first(shape):
    return (shape[0], shape[-1], *shape[1:-1])


def weights(*shape):
    return rng.standard_normal(shape).astype(np.float32) * np.float32(0.05)


def integers(most, *shape):
    return rng.integers(0, most, shape).astype(np.int32)
