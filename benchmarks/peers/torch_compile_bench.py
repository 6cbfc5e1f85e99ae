"""torch.compile (inductor's C++ back end), called from Python."""

import logging
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import timer

o = timer.parse()
logging.disable(logging.WARNING)
import inputs
import torch
import torch.nn.functional as F

torch.set_num_threads(o.threads)
torch.manual_seed(1)


def uniform(*shape):
    return torch.rand(shape) + 0.1


def wrapped(f):
    return torch.compile(f, dynamic=False)


def call(f, *inputs):
    compiled = wrapped(f)

    def run():
        with torch.no_grad():
            compiled(*inputs)

    return run


def tracked(f, *others):
    compiled, x = wrapped(f), torch.ones(4, requires_grad=True)
    return lambda: compiled(x, *others)


def gradient(f, *others):
    compiled, x = wrapped(f), torch.ones(4, requires_grad=True)
    return lambda: torch.autograd.grad(compiled(x, *others), x)


ones = torch.ones(4)
timer.row("small.add", lambda: call(lambda a, b: a + b, ones, ones))
timer.row("small.add_tracked", lambda: tracked(lambda a, b: a + b, ones))
timer.row("small.add_mul_sum_fb", lambda: gradient(lambda a, b, c: ((a + b) * c).sum(), ones, ones))
timer.row("small.matmul2", lambda: call(lambda a, b: a @ b, torch.ones(2, 2), torch.ones(2, 2)))
timer.row("small.sum4", lambda: call(lambda a: a.sum(), ones))
timer.row("small.reshape", lambda: call(lambda a: a.reshape(2, 2), ones))


def descent(network, shapes, x, labels):
    """One step of plain gradient descent on weights of these shapes, and a bias for each."""
    ps = []
    for shape in shapes:
        ps += [torch.randn(shape).mul_(0.05).requires_grad_(), torch.zeros(shape[0], requires_grad=True)]
    loss = wrapped(lambda ps, x, labels: F.cross_entropy(network(ps, x), labels))
    update = wrapped(lambda ps, gs: [p.sub_(g, alpha=0.01) for p, g in zip(ps, gs)])

    def run():
        gradients = torch.autograd.grad(loss(ps, x, labels), ps)
        with torch.no_grad():
            update(ps, gradients)

    return run


def mlp_step(batch, widths):
    def network(ps, x):
        h = x
        for i in range(0, len(ps) - 2, 2):
            h = torch.relu(F.linear(h, ps[i], ps[i + 1]))
        return F.linear(h, ps[-2], ps[-1])

    shapes = [(n, m) for m, n in zip(widths, widths[1:])]
    return descent(network, shapes, uniform(batch, widths[0]), torch.randint(widths[-1], (batch,)))


def cnn_step():
    def network(ps, x):
        h = F.max_pool2d(torch.relu(F.conv2d(x, ps[0], ps[1])), 2)
        h = F.max_pool2d(torch.relu(F.conv2d(h, ps[2], ps[3])), 2).reshape(64, 1600)
        return F.linear(torch.relu(F.linear(h, ps[4], ps[5])), ps[6], ps[7])

    shapes = ((32, 1, 3, 3), (64, 32, 3, 3), (128, 1600), (10, 128))
    return descent(network, shapes, uniform(64, 1, 28, 28), torch.randint(10, (64,)))


timer.row("train.cnn_b64", cnn_step)
timer.row("train.mlp_b32", lambda: mlp_step(32, [64, 128, 10]))


def chain10(x):
    return (x * 0.5) * (torch.tanh((x + x * x * x * 0.044715) * 0.7978845608) + 1.0) + x


for size, tag in ((1000, "1e3"), (100000, "1e5"), (10000000, "1e7")):
    timer.row(f"ew.add.{tag}", lambda n=size: call(lambda a, b: a + b, uniform(n), uniform(n)))
    timer.row(f"ew.mul.{tag}", lambda n=size: call(lambda a, b: a * b, uniform(n), uniform(n)))
    timer.row(f"ew.relu.{tag}", lambda n=size: call(torch.relu, uniform(n)))
    timer.row(f"ew.exp.{tag}", lambda n=size: call(torch.exp, uniform(n)))
timer.row("ew.chain10.1e7", lambda: call(chain10, uniform(10000000)))
timer.row(
    "idx.transpose0231",
    lambda: call(lambda a: a.permute(0, 2, 3, 1).contiguous(), uniform(32, 64, 56, 56)),
)
timer.row("idx.transpose2d_4096", lambda: call(lambda a: a.t().contiguous(), uniform(4096, 4096)))


def cross_entropy(target):
    loss, z = wrapped(F.cross_entropy), uniform(1024, 1000).requires_grad_()
    return lambda: torch.autograd.grad(loss(z, target), z)


classes = torch.randint(1000, (1024,))
timer.row("nn.softmax_ce_1024x1000_fb", lambda: cross_entropy(F.one_hot(classes, 1000).float()))
timer.row("nn.sparse_ce_1024x1000_fb", lambda: cross_entropy(classes))



def forward_and_back(name, layout, f, *shapes):
    """f and its gradients, from a cotangent that is given."""
    formats = {4: torch.channels_last, 5: torch.channels_last_3d} if layout == ".cl" else {}

    def operands(tracked):
        formatted = ((torch.rand(s) - 0.5).contiguous(memory_format=formats.get(len(s), torch.contiguous_format)) for s in shapes)
        return [t.requires_grad_(tracked) for t in formatted]

    def back():
        compiled, tensors = wrapped(f), operands(True)
        ones = torch.ones_like(f(*tensors))
        return lambda: torch.autograd.grad(compiled(*tensors), tensors, ones)

    timer.row(f"{name}_f{layout}", lambda: call(f, *operands(False)))
    timer.row(f"{name}_fb{layout}", back)


def convolution(name, x, kernel, stride, layout):
    x = inputs.channels_first(x)
    channels = kernel[-2:] if name.startswith("dw") else (kernel[-1], kernel[-2])
    kernel = (*channels, *kernel[:-2])
    pad = (kernel[2] - 1) // 2
    if name == "c1d_k5" and layout == ".cl":  # a view with the channels in the middle
        x = (x[0], x[2], x[1])

        def f(x, k):
            return F.conv1d(F.pad(x.transpose(1, 2), (4, 0)), k).transpose(1, 2)

    elif name.startswith("t4x4"):

        def f(x, k):
            return F.conv_transpose2d(x, k, stride=stride, padding=1)

    elif name.startswith("dw"):

        def f(x, k):
            return F.conv2d(x, k, padding=1, groups=x.shape[1])

    else:
        op = {3: F.conv1d, 4: F.conv2d, 5: F.conv3d}[len(x)]

        def f(x, k):
            return op(x, k, stride=stride, padding=pad)

    forward_and_back(f"conv.{name}", layout, f, x, kernel)


for layout in (".cl", ".cf"):
    for name, (x, kernel, stride) in inputs.CONVOLUTIONS.items():
        convolution(name, x, kernel, stride, layout)
    images = inputs.channels_first(inputs.IMAGES)
    forward_and_back("pool.max2_56x64", layout, lambda x: F.max_pool2d(x, 2), images)
    forward_and_back("pool.avg2_56x64", layout, lambda x: F.avg_pool2d(x, 2), images)
    forward_and_back(
        "pool.resize2_56x64",
        layout,
        lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
        images,
    )

timer.run(o, peer="torch-compile", version=torch.__version__)
