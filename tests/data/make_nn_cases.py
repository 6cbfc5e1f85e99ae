#!/usr/bin/env python3
"""tests/data/make_nn_cases.py - writes nn_cases.txt: what PyTorch gives for the expressions of tests/nn_samples.h.

Each row of that table is evaluated in float64 by PyTorch where it has the function, else by NumPy from the formula of the paper or of
Keras' documentation, on numbers that are rounded to the dtype of the case; the result is rounded once. Cases have the form of
numpy_cases.txt, by whose script expressions are read.

Run with PyTorch 2, NumPy 2.4 and SciPy: `python3 tests/data/make_nn_cases.py`.
"""
import pathlib
import re
import types
import zlib

import numpy
import torch
import torch.nn.functional as F

import make_numpy_cases as cases

root = pathlib.Path(__file__).resolve().parents[2]
inf, nan = numpy.inf, numpy.nan
EPSILON = 1e-7   # K::epsilon()
nn = types.SimpleNamespace()


def by_torch(f):
    """f of tensors as a function of arrays."""
    def call(*args, **options):
        out = f(*(torch.from_numpy(numpy.array(a)) if isinstance(a, numpy.ndarray) else a for a in args), **options)
        return [t.numpy() for t in out] if isinstance(out, (tuple, list)) else out.numpy()
    return call


for name, f in {
        "relu": F.relu, "relu6": F.relu6, "silu": F.silu, "mish": F.mish, "selu": F.selu, "elu": F.elu, "celu": F.celu, "softplus": F.softplus,
        "leaky_relu": lambda x, slope=0.2: F.leaky_relu(x, slope), "gelu": lambda x, approximate=True: F.gelu(x, approximate="tanh" if approximate else "none"),
        "glu": lambda x, axis=-1: F.glu(x, axis), "sigmoid": torch.sigmoid, "hard_sigmoid": F.hardsigmoid, "log_sigmoid": F.logsigmoid, "hard_silu": F.hardswish,
        "softsign": F.softsign, "tanh": torch.tanh, "hard_tanh": F.hardtanh, "tanh_shrink": F.tanhshrink, "hard_shrink": F.hardshrink, "soft_shrink": F.softshrink,
        "threshold": F.threshold,
        "one_hot": lambda x, n, axis, dtype: torch.movedim(F.one_hot(x.long(), n), -1, axis).to(getattr(torch, dtype.__name__)),
        "mean_squared_error": lambda t, o: F.mse_loss(o, t, reduction="none").mean(-1), "mean_absolute_error": lambda t, o: F.l1_loss(o, t, reduction="none").mean(-1),
        "huber": lambda t, o, delta=1.0: F.huber_loss(o, t, reduction="none", delta=delta).mean(-1),
        "kl_divergence": lambda t, o: F.kl_div(o.log(), t, reduction="none").sum(-1),
        "poisson": lambda t, o: F.poisson_nll_loss(o, t, log_input=False, reduction="none", eps=EPSILON).mean(-1),
        "cosine_similarity": lambda t, o, axis=-1: -F.cosine_similarity(t, o, dim=axis),
        "nll_loss": lambda t, o, axis=-1: F.nll_loss(torch.movedim(o, axis, 1), t.long(), reduction="none"),
        "triplet_margin_loss": lambda a, p, n, margin=1.0, order=2.0: F.triplet_margin_loss(a, p, n, margin=margin, p=order, reduction="none"),
        "binary_crossentropy": lambda t, o, logits=False: (F.binary_cross_entropy_with_logits if logits else F.binary_cross_entropy)(o, t, reduction="none"),
        "categorical_crossentropy": lambda t, o, logits=False, axis=-1: -(t * (F.log_softmax(o, axis) if logits else (o / o.sum(axis, keepdim=True)).log())).sum(axis),
        "sparse_categorical_crossentropy": lambda t, o, logits=False, axis=-1: F.nll_loss(
            torch.movedim(F.log_softmax(o, axis) if logits else (o / o.sum(axis, keepdim=True)).log(), axis, 1), t.long(), reduction="none"),
        "moments": lambda x, axes: (x.mean(axes), x.var(axes, correction=0)),
        "normalize": lambda x, axis=-1, order=2: x / torch.linalg.vector_norm(x, order, axis, keepdim=True),
        "batch_normalization": lambda x, mean, var, axis, offset=None, scale=None: torch.movedim(F.batch_norm(
            torch.movedim(x, axis, 1), *(None if p is None else p.expand(x.shape[axis]).contiguous() for p in (mean, var, scale, offset)), eps=1e-3), 1, axis),
        "instance_normalization": lambda x, gamma=None, beta=None, axis=-1, eps=1e-3: torch.movedim(F.instance_norm(torch.movedim(x, axis, 1), None, None, gamma, beta, eps=eps), 1, axis),
        "group_normalization": lambda x, groups, gamma=None, beta=None, axis=-1, eps=1e-3: torch.movedim(F.group_norm(torch.movedim(x, axis, 1), groups, gamma, beta, eps), 1, axis),
}.items():
    setattr(nn, name, by_torch(f))


def to_end(f):
    """f of an array whose axes come last in their order, and of their sizes, moved back."""
    def call(x, gamma=None, beta=None, axis=-1, epsilon=EPSILON):
        axes = axis if isinstance(axis, tuple) else (axis,)
        last = tuple(range(-len(axes), 0))
        moved = torch.movedim(torch.from_numpy(numpy.array(x)), axes, last)
        as_tensor = [None if p is None else torch.from_numpy(numpy.array(p)) for p in (gamma, beta)]
        return torch.movedim(f(moved, moved.shape[-len(axes):], *as_tensor, epsilon), last, axes).numpy()
    return call


def attention(q, k, v, bias=None, mask=None, scale=None, is_causal=False):
    """PyTorch's, whose heads come before the lengths."""
    given = [None if x is None else torch.from_numpy(numpy.array(x)) for x in (q, k, v, bias, mask)]
    q, k, v = (torch.movedim(x, 1, 2) for x in given[:3])
    k, v = (torch.repeat_interleave(x, q.shape[1] // x.shape[1], 1) for x in (k, v))
    allowed = given[3] if given[4] is None else given[4]
    # A query that sees no key: zeros.
    return torch.movedim(torch.nan_to_num(F.scaled_dot_product_attention(q, k, v, allowed, scale=scale, is_causal=is_causal)), 1, 2).numpy()


nn.dot_product_attention = attention
nn.layer_normalization = to_end(F.layer_norm)
nn.rms_normalization = lambda x, scale=None, axis=-1, epsilon=EPSILON: to_end(lambda t, sizes, gamma, beta, eps: F.rms_norm(t, sizes, gamma, eps))(x, scale, None, axis, epsilon)
nn.sparse_sigmoid = lambda x: numpy.clip((x + 1) / 2, 0, 1)
nn.squareplus = lambda x, b=4: (x + numpy.sqrt(x * x + b)) / 2
nn.sparse_plus = lambda x: numpy.where(x <= -1, 0, numpy.where(x >= 1, x, (x + 1)**2 / 4))
nn.log_cosh = lambda t, o: numpy.mean(numpy.log(numpy.cosh(o - t)), -1)
nn.hinge = lambda t, o: numpy.mean(numpy.maximum(1 - t * o, 0), -1)
nn.squared_hinge = lambda t, o: numpy.mean(numpy.maximum(1 - t * o, 0)**2, -1)
nn.categorical_hinge = lambda t, o: numpy.maximum(numpy.max((1 - t) * o, -1) - numpy.sum(t * o, -1) + 1, 0)
nn.psnr = lambda a, b, top: 20 * numpy.log10(top) - 10 * numpy.log10(numpy.mean((a - b)**2))
nn.softmax = lambda x, axis=-1: cases.scipy.special.softmax(x, axis)
nn.log_softmax = lambda x, axis=-1: cases.scipy.special.log_softmax(x, axis)


def multi_hot(x, n, axis, dtype):
    out = numpy.zeros((*x.shape[:-1], n))
    for place in numpy.ndindex(*x.shape):
        out[(*place[:-1], x[place])] = 1
    return numpy.moveaxis(out, -1, axis).astype(dtype)


def simplex(z):
    """The nearest point of the simplex, by bisection of the shift."""
    low, high = z.min() - 1, z.max()
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if numpy.maximum(z - middle, 0).sum() > 1 else (low, middle)
    return numpy.maximum(z - high, 0)


def plus_zero(f):
    return lambda *a: f(*a) + 0.0   # 0 for -0


nn.soft_shrink = plus_zero(nn.soft_shrink)
nn.multi_hot = multi_hot
nn.sparsemax = lambda x, axis=-1: numpy.apply_along_axis(simplex, axis, x)


def spatial(f, first_only=False):
    """f of images with channels first, for both data formats."""
    def call(x, *args, data_format=None, **options):
        if args and isinstance(args[-1], str):
            *args, data_format = args
        t = torch.from_numpy(numpy.array(x))
        first = data_format == "channels_first"
        out = f(t if first else torch.movedim(t, -1, 1), *(torch.from_numpy(numpy.array(a)) if isinstance(a, numpy.ndarray) else a for a in args), **options)
        return (out if first else torch.movedim(out, 1, -1)).numpy()
    return call


def convolve(x, w, strides=1, padding="valid", dilation_rate=1):
    axes = x.ndim - 2
    each = lambda n: (n,) * axes if isinstance(n, int) else n
    if padding == "same":
        around = []
        for n, k, s in reversed(list(zip(x.shape[2:], w.shape[:axes], each(strides)))):
            total = max((-(-n // s) - 1) * s + k - n, 0)
            around += [total // 2, total - total // 2]
        x = F.pad(x, around)
    kernel = w.permute(axes + 1, axes, *range(axes))
    return getattr(F, f"conv{axes}d")(x, kernel, stride=each(strides), dilation=each(dilation_rate), groups=x.shape[1] // kernel.shape[1])


def by_rank(name):
    return lambda x, *args, **options: getattr(F, f"{name}{x.ndim - 2}d")(x, *args, **options)


def pool(name):
    return lambda x, size, strides=None: by_rank(name)(x, size, strides)


def blocks_to_space(x, block):
    """TensorFlow's order of channels: the block comes first."""
    n, c, h, w = x.shape
    return x.reshape(n, block, block, c // block**2, h, w).permute(0, 3, 4, 1, 5, 2).reshape(n, c // block**2, h * block, w * block)


def space_to_blocks(x, block):
    n, c, h, w = x.shape
    return F.pixel_unshuffle(x, block).reshape(n, c, block**2, h // block, w // block).transpose(1, 2).reshape(n, -1, h // block, w // block)


for name, f in {"conv": convolve, "max_pool": pool("max_pool"), "average_pool": pool("avg_pool"), "adaptive_average_pool": by_rank("adaptive_avg_pool"),
                "adaptive_max_pool": by_rank("adaptive_max_pool"), "depth_to_space": blocks_to_space, "space_to_depth": space_to_blocks}.items():
    setattr(nn, name, spatial(f))
nn.unfold = by_torch(F.unfold)
nn.fold = by_torch(F.fold)

# Rows without a counterpart, and why.
SKIPPED = {}
# Functions whose values at infinities PyTorch computes as NaN, or says to be undefined; tests/nn/activations_test.cpp has ours.
ORDINARY_ONLY = {"gelu", "silu", "mish", "tanh_shrink", "squareplus", "sparsemax", "glu", "softmax", "log_softmax", "hard_silu", "softsign", "selu", "celu", "normalize", "cosine_similarity", "log_sigmoid"}


def main():
    out = []
    for name, shapes_text, expression, inputs, _ in cases.rows("tests/nn_samples.h"):
        if name in SKIPPED:
            continue
        rng = numpy.random.default_rng(zlib.crc32(expression.encode()))
        text = re.sub(r"list\((.*)\)$", r"\1", expression).replace("in[4]", "in4").replace("INFINITY", "inf")
        code = compile(cases.python_of(text).replace("nn::", "nn."), expression, "eval")
        for number, case in enumerate(shapes_text.split("|")):
            shapes = [tuple(int(d) for d in s.split(",") if d) for s in re.findall(r"\(([\d,]*)\)", case)]
            for dtype in ("float32", "float64") if number == 0 else ("float32",):
                for special in (False, True) if len(shapes) == 1 and number < 2 and len(inputs[0]) < 3 and name not in ORDINARY_ONLY else (False,):
                    given = [cases.arrays(s, i[0], i[1], i[2] if len(i) > 2 else dtype, rng, "one zero" if special else False) for s, i in zip(shapes, inputs)]
                    if special and ("axis" in expression or name in ("moments", "layer_normalization", "rms_normalization", "instance_normalization")):
                        continue
                    exact = [v.astype("float64") if v.dtype == numpy.float32 else v for v in given]
                    with numpy.errstate(all="ignore"):
                        result = eval(code, dict(zip(("x", "y", "z", "w", "in4"), exact), nn=nn, numpy=numpy, inf=inf, None_=None))
                    results = [numpy.asarray(r) for r in (result if isinstance(result, (tuple, list)) else [result])]
                    fixed = name in ("one_hot", "multi_hot")
                    rounded = [r if fixed else r.astype(dtype) for r in results]
                    out.append(f"{expression} | {' | '.join(map(cases.text_of, given))} = {' ; '.join(map(cases.text_of, rounded))}")
    head = f"# tests/data/nn_cases.txt - made by make_nn_cases.py with PyTorch {torch.__version__.split('+')[0]} and NumPy {numpy.__version__}.\n"
    (root / "tests/data/nn_cases.txt").write_text(head + "\n".join(out) + "\n")
    print(len(out), "cases")


if __name__ == "__main__":
    main()
