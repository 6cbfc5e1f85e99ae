"""Writes tests/data/convolution_cases.txt: what tf.keras.backend and PyTorch make of given tensors, and the gradients.

    {python of TensorFlow 2.15} make_convolution_cases.py tensorflow > convolution_cases.txt
    {python of PyTorch 2} make_convolution_cases.py pytorch >> convolution_cases.txt

A line is read like those of keras_cases.txt: function, arguments, tensors -> result | the gradient by each tensor; the cotangent of element
i is 1 + 0.5 (i mod 3). Inputs are multiples of 1/4. PyTorch computes in float64, with its own arguments: padding by hand, groups, kernels
with the output channels first. Half types are rounded once, at the end. A second number as argument is another seed: other cases, to try.
"""
import os
import sys

import numpy as np

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

PEER = sys.argv[1]
rng = np.random.RandomState(int(sys.argv[2]) if len(sys.argv) > 2 else {"tensorflow": 29, "pytorch": 31}[PEER])
SHORT = {"float32": "f4", "float64": "f8", "float16": "f2", "bfloat16": "b2", "int32": "i4", "uint8": "u1"}
DIGITS = {"f4": 7, "f8": 12, "f2": 5, "b2": 4}


# ---- text -------------------------------------------------------------------------------------------------------------
def number(v, digits):
    s = "%.*g" % (digits, v)
    if s.startswith("0."):
        s = s[1:]
    elif s.startswith("-0."):
        s = "-" + s[2:]
    return s


def tensor_text(a, dtype, exact=False):
    form = (lambda v: number(v, 17 if exact else DIGITS[dtype])) if dtype in DIGITS else str
    return "%s[%s]=%s" % (dtype, ",".join(map(str, a.shape)), ",".join(map(form, a.ravel().tolist())))


def argument_text(v):
    return "[" + ",".join(map(str, v)) + "]" if isinstance(v, (list, tuple)) else str(v)


def emit(fn, args, arrays, dtype, y, gradients):
    head = [fn] + ["%s=%s" % (k, argument_text(v)) for k, v in args.items()] + [tensor_text(a, dtype, True) for a in arrays]
    out = SHORT["float32"] if args.get("interpolation") == "bilinear" and dtype != "f8" else dtype
    line = " ".join(head) + " -> " + tensor_text(y, out)
    if gradients is not None:
        line += " | " + " ".join(tensor_text(g, dtype) for g in gradients)
    print(line)


def cotangent(n):
    return 1 + 0.5 * (np.arange(n) % 3)


# ---- geometries -------------------------------------------------------------------------------------------------------
def integer(low, high):
    return int(rng.randint(low, high + 1))


def values(shape):
    return rng.randint(-8, 9, shape) / 4.0


class Axis:
    """A window on one axis, with its sizes."""

    def __init__(self, kernel, stride, dilation, padding, n):
        extent = (kernel - 1) * dilation + 1
        if padding == "valid":
            n = max(n, extent)
            self.out, missing = (n - extent) // stride + 1, 0
        elif padding == "causal":
            self.out, missing = (n - 1) // stride + 1, extent - 1
        else:
            self.out = -(-n // stride)
            missing = max(0, (self.out - 1) * stride + extent - n)
        self.before = missing if padding == "causal" else missing // 2
        self.after = missing - self.before
        self.n, self.kernel, self.stride, self.dilation = n, kernel, stride, dilation


class Geometry:
    def __init__(self, axes, causal=False, dilates=True, equal=False, kernels=4, most=7):
        self.first = bool(rng.randint(2))
        self.padding = "causal" if causal and not self.first and rng.randint(3) == 0 else ["valid", "same"][rng.randint(2)]
        self.batch = integer(1, 2)
        self.dilated = dilates and rng.randint(3) == 0
        self.axes = []
        strides = [integer(1, 3)] * axes if equal or rng.randint(2) else [integer(1, 3) for _ in range(axes)]
        dilations = [integer(1, 3)] * axes if equal or rng.randint(2) else [integer(1, 3) for _ in range(axes)]
        for i in range(axes):
            stride, dilation = (1, dilations[i]) if self.dilated else (strides[i], 1)
            self.axes.append(Axis(integer(1, kernels), stride, dilation, self.padding, integer(1, most)))

    def each(self, name):
        return [getattr(a, name) for a in self.axes]

    def shape(self, sizes, channels):
        return [self.batch] + ([channels] + sizes if self.first else sizes + [channels])

    def arguments(self, *names):
        """Those that differ from the default, or all of them as often."""
        args, alone = {}, rng.randint(2) == 0
        listed = lambda name: self.each(name)[0] if len(self.axes) == 1 else self.each(name)
        if alone or max(self.each("stride")) > 1:
            args["strides"] = listed("stride")
        if alone or self.padding != "valid":
            args["padding"] = self.padding
        if alone or self.first:
            args["data_format"] = "channels_first" if self.first else "channels_last"
        if "dilation_rate" in names and (alone or self.dilated):
            args["dilation_rate"] = listed("dilation")
        return args


def convolution(axes):
    g = Geometry(axes, causal=axes == 1, kernels=3 if axes == 3 else 4, most=4 if axes == 3 else 6 if axes == 2 else 12)
    c, f = integer(1, 3), integer(1, 3)
    return "conv%dd" % axes, g, g.arguments("dilation_rate"), [values(g.shape(g.each("n"), c)), values(g.each("kernel") + [c, f])]


def transposed(axes):
    g = Geometry(axes, dilates=axes == 2, equal=True, kernels=3, most=4 if axes == 3 else 6)
    c, f = integer(1, 3), integer(1, 3)
    wanted = g.shape(g.each("n"), f)
    if rng.randint(2):
        wanted[0] = None
    return ("conv%dd_transpose" % axes, g, {"output_shape": wanted, **g.arguments(*(["dilation_rate"] if axes == 2 else []))},
            [values(g.shape(g.each("out"), c)), values(g.each("kernel") + [f, c])])


def depthwise():
    g = Geometry(2, equal=PEER == "tensorflow", most=5)
    c, m = integer(1, 4), integer(1, 3)
    return "depthwise_conv2d", g, g.arguments("dilation_rate"), [values(g.shape(g.each("n"), c)), values(g.each("kernel") + [c, m])]


def separable(axes):
    g = Geometry(axes, equal=True, kernels=3, most=5)
    c, m, f = integer(1, 3), integer(1, 2), integer(1, 3)
    return ("separable_conv%dd" % axes, g, g.arguments("dilation_rate"),
            [values(g.shape(g.each("n"), c)), values(g.each("kernel") + [c, m]), values([1] * axes + [c * m, f])])


def pool(axes, mode):
    g = Geometry(axes, dilates=False, kernels=3 if axes == 3 else 4, most=4 if axes == 3 else 7)
    g.mode = mode
    x = values(g.shape(g.each("n"), integer(1, 3)))
    if mode == "max" and PEER == "tensorflow" and axes == 3:   # of volumes its gradient goes to all elements of a tie
        x = (rng.permutation(x.size).reshape(x.shape) - x.size // 2) / 4.0
    elif mode == "max" and rng.randint(2):
        x = rng.randint(0, 3, x.shape) * 1.0   # ties
    if mode == "max" and PEER == "pytorch" and rng.randint(4) == 0:
        x[rng.rand(*x.shape) < 0.15] = np.nan
    return "pool%dd" % axes, g, {"pool_size": g.each("kernel"), **g.arguments(), "pool_mode": mode}, [x]


def local(axes):
    g = Geometry(axes, dilates=False, kernels=3, most=5)
    for a in g.axes:
        a.__init__(a.kernel, a.stride, 1, "valid", a.n)
    g.first &= axes == 2   # along one axis Keras ignores the format
    c, f = integer(1, 2), integer(1, 2)
    args = {"kernel_size": g.each("kernel"), "strides": g.each("stride")}
    if axes == 2:
        args["output_shape"] = g.each("out")
    if g.first:
        args["data_format"] = "channels_first"
    return "local_conv%dd" % axes, g, args, [values(g.shape(g.each("n"), c)), values([int(np.prod(g.each("out"))), int(np.prod(g.each("kernel"))) * c, f])]


def resized(name):
    axes = 3 if name == "resize_volumes" else 2
    g = Geometry(axes, most=4)
    args = dict(zip(["depth_factor", "height_factor", "width_factor"][3 - axes:], [integer(1, 3) for _ in range(axes)]))
    args["data_format"] = "channels_first" if g.first else "channels_last"
    if axes == 2:
        args["interpolation"] = ["nearest", "bilinear"][rng.randint(2)] if PEER == "tensorflow" else "nearest"
    return name, g, args, [values(g.shape([integer(1, 4) for _ in range(axes)], integer(1, 2)))]


def padded(axes):
    g = Geometry(axes)
    amounts = [(integer(0, 2), integer(0, 2)) for _ in range(axes)]
    args = {"padding": [n for pair in amounts for n in pair]}
    if axes > 1 and g.first:
        args["data_format"] = "channels_first"
    g.first &= axes > 1
    g.amounts = amounts
    return ["", "temporal_padding", "spatial_2d_padding", "spatial_3d_padding"][axes], g, args, [values(g.shape([integer(1, 3) for _ in range(axes)], integer(1, 2)))]


def bias():
    axes = integer(0, 3)
    g = Geometry(axes)
    channels, sizes = integer(1, 4), [integer(1, 3) for _ in range(axes)]
    g.whole = axes > 0 and rng.randint(2) == 0
    args = {"data_format": "channels_first"} if g.first else {}
    return "bias_add", g, args, [values(g.shape(sizes, channels)), values(sizes + [channels] if g.whole else [channels])]


COUNTS = [(40, convolution, 1), (60, convolution, 2), (26, convolution, 3), (36, transposed, 2), (18, transposed, 3), (36, depthwise), (14, separable, 1),
          (18, separable, 2), (24, pool, 2, "max"), (24, pool, 2, "avg"), (12, pool, 3, "max"), (12, pool, 3, "avg"), (10, local, 1), (14, local, 2),
          (24, resized, "resize_images"), (8, resized, "resize_volumes"), (4, padded, 1), (6, padded, 2), (6, padded, 3), (14, bias)]


def cases():
    for count, make, *of in COUNTS:
        for _ in range(count if PEER == "tensorflow" else count * 2 // 3):
            yield make(*of)


# ---- TensorFlow -------------------------------------------------------------------------------------------------------
def tensorflow():
    import tensorflow as tf
    from keras.src import backend as K
    print("# Written by make_convolution_cases.py, which says how to read it, with TensorFlow %s." % tf.__version__)

    def run(fn, ts, args, g):
        args = dict(args)
        if "output_shape" in args and fn.endswith("transpose"):
            args["output_shape"] = [g.batch if n is None else n for n in args["output_shape"]]
        for name in ("strides", "dilation_rate", "pool_size", "kernel_size", "output_shape"):
            if isinstance(args.get(name), list):
                args[name] = tuple(args[name])
        if fn.endswith("padding"):
            return getattr(K, fn)(ts[0], padding=g.amounts[0] if fn == "temporal_padding" else tuple(g.amounts), **{k: v for k, v in args.items() if k != "padding"})
        if args.get("interpolation") == "bilinear":   # that of 2.15 has centred pixels; that of 2.3 has not
            first = args["data_format"] == "channels_first"
            x = tf.transpose(ts[0], (0, 2, 3, 1)) if first else ts[0]
            size = (x.shape[1] * args["height_factor"], x.shape[2] * args["width_factor"])
            y = tf.compat.v1.image.resize_bilinear(x, size, align_corners=False, half_pixel_centers=False)
            return tf.transpose(y, (0, 3, 1, 2)) if first else y
        if fn == "separable_conv1d":   # that of 2.15 fails outside of graphs
            x = tf.transpose(ts[0], (0, 2, 1)) if g.first else ts[0]
            y = tf.nn.separable_conv2d(x[:, None], ts[1][None], ts[2][None], (1,) + (g.each("stride")[0],) * 2 + (1,), g.padding.upper(),
                                       dilations=(1, g.each("dilation")[0]))[:, 0]
            return tf.transpose(y, (0, 2, 1)) if g.first else y
        if fn == "bias_add" and g.whole and len(ts[0].shape) == 2:
            return ts[0] + ts[1]
        return getattr(K, fn)(*ts, **args)

    for fn, g, args, arrays in cases():
        dtype = "float64" if rng.randint(4) == 0 and args.get("interpolation") != "bilinear" and fn != "pool3d" else "float32"
        ts = [tf.constant(a, dtype) for a in arrays]
        with tf.GradientTape() as tape:
            for t in ts:
                tape.watch(t)
            y = run(fn, ts, args, g)
        w = tf.constant(cotangent(int(np.prod(y.shape))).reshape(y.shape), y.dtype)
        emit(fn, args, arrays, SHORT[dtype], y.numpy(), [tf.convert_to_tensor(v).numpy() for v in tape.gradient(y, ts, output_gradients=w)])


# ---- PyTorch ----------------------------------------------------------------------------------------------------------
def pytorch():
    import torch
    import torch.nn.functional as F
    print("# Written by make_convolution_cases.py with PyTorch %s." % torch.__version__.split("+")[0])

    def around(x, g, value=0.0):
        """x, channels first, with the padding of the windows."""
        pads = [n for a in reversed(g.axes) for n in (a.before, a.after)]
        return F.pad(x, pads, value=value)

    def out_first(w):
        return w.permute(w.dim() - 1, w.dim() - 2, *range(w.dim() - 2)).contiguous()

    def in_groups(w):
        """(size of each axis..., channels, multiplier) as PyTorch has it for as many groups as channels."""
        return w.reshape(*w.shape[:-2], 1, -1).permute(w.dim() - 1, w.dim() - 2, *range(w.dim() - 2)).contiguous()

    def back(x, w, g):
        """A transposed convolution: what is before and after the wanted elements is cut away, what is missing added."""
        full = [F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d][len(g.axes) - 1](x, w, stride=g.each("stride"), dilation=g.each("dilation"))
        for i, a in enumerate(g.axes):
            have = full.shape[2 + i] - a.before
            full = full.narrow(2 + i, a.before, min(have, a.n))
        return F.pad(full, [n for i, a in reversed(list(enumerate(g.axes))) for n in (0, a.n - full.shape[2 + i])])

    def run(fn, ts, args, g):
        axes = len(g.axes)
        conv = [None, F.conv1d, F.conv2d, F.conv3d][axes]
        x = ts[0]
        if fn.startswith(("conv", "depthwise", "separable")):
            how = {"stride": g.each("stride"), "dilation": g.each("dilation")}
            if fn.endswith("transpose"):
                return back(x, out_first(ts[1]), g)
            if fn.startswith("conv"):
                return conv(around(x, g), out_first(ts[1]), **how)
            y = conv(around(x, g), in_groups(ts[1]), groups=x.shape[1], **how)
            return y if fn.startswith("depthwise") else conv(y, out_first(ts[2]))
        if fn.startswith("pool"):
            kernel, stride = g.each("kernel"), g.each("stride")
            if g.mode == "max":
                return [F.max_pool2d, F.max_pool3d][axes - 2](around(x, g, -np.inf), kernel, stride)
            mean = [F.avg_pool2d, F.avg_pool3d][axes - 2]
            return mean(around(x, g), kernel, stride) / mean(around(torch.ones_like(x), g), kernel, stride)
        if fn.startswith("local"):
            size, stride = g.each("kernel"), g.each("stride")
            if axes == 1:
                size, stride, x = [size[0], 1], [stride[0], 1], x[..., None]
            patches = F.unfold(x, size, stride=stride)               # batch, (channels, rows, columns), places
            if not g.first:
                patches = patches.reshape(x.shape[0], x.shape[1], -1, patches.shape[-1]).transpose(1, 2).flatten(1, 2)
            y = torch.einsum("nfp,pfo->nop", patches, ts[1])
            return y if axes == 1 else y.reshape(*y.shape[:2], *g.each("out"))
        if fn.startswith("resize"):
            return F.interpolate(x, scale_factor=[float(v) for k, v in args.items() if k.endswith("factor")], mode="nearest")
        if fn.endswith("padding"):
            return F.pad(x, [n for pair in reversed(g.amounts) for n in pair])
        b = ts[1]
        if x.dim() > 2 and not g.whole:
            b = b.reshape(-1, *[1] * (x.dim() - 2))
        elif g.whole and g.first:
            b = b.reshape(b.shape[-1], *b.shape[:-1])                # Keras reshapes
        elif g.whole:
            b = b.permute(b.dim() - 1, *range(b.dim() - 1))
        return x + b

    for fn, g, args, arrays in cases():
        dtype = ["f8", "f8", "f4", "f4", "f2", "b2"][rng.randint(6)]
        if np.isnan(arrays[0]).any():
            dtype = ["f8", "f4"][rng.randint(2)]
        given = [torch.tensor(a, dtype=torch.float64, requires_grad=True) for a in arrays]
        rank = arrays[0].ndim
        first = lambda t: t if g.first or rank < 3 else t.permute(0, rank - 1, *range(1, rank - 1))
        last = lambda t: t if g.first or rank < 3 else t.permute(0, *range(2, rank), 1)
        y = last(run(fn, [first(given[0])] + given[1:], args, g))
        if dtype in ("f4", "f8"):
            rounded = lambda t: t
        else:   # once, at the end
            rounded = lambda t: t.to({"f2": torch.float16, "b2": torch.bfloat16}[dtype]).to(torch.float64)
        gradients = None   # of more than one NaN PyTorch takes the last
        if not np.isnan(arrays[0]).any():
            gradients = [rounded(v).numpy() for v in torch.autograd.grad(y, given, torch.tensor(cotangent(y.numel())).reshape(y.shape))]
        emit(fn, args, arrays, dtype, rounded(y.detach()).numpy(), gradients)


{"tensorflow": tensorflow, "pytorch": pytorch}[PEER]()
