"""PyTorch, eager, on a CUDA device: the rows of ours/device.cpp, at the same sizes.

    torch_cuda_bench.py [REGEX of rows] --device cuda:0 [--tiny] [--budget SECONDS]
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import timer

o = timer.parse()
import torch
import torch.nn.functional as F

device = torch.device(o.device)
if device.type == "cuda":
    if not torch.cuda.is_available():
        sys.exit("torch finds no CUDA device")
    torch.cuda.set_device(device)
    timer.finish = torch.cuda.synchronize
# As ours: float32 is float32.
torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False
torch.backends.cudnn.benchmark = True
torch.manual_seed(1)

# The numbers of `Scale` in ours/device.cpp.
side, images, pixels, classes, features, picked, size, batch, times, adam, adds = (
    (64, 2, 6, 50, 8, 16, 16, 2, 3, 1000, 100)
    if o.tiny
    else (4096, 64, 56, 50000, 512, 16384, 2048, 64, 50, 10000000, 100000)
)
n = side * side


def numbers(*shape):
    return torch.rand(shape, device=device) + 0.1


def tracked(*shape):
    return numbers(*shape).requires_grad_()


def integers(most, *shape):
    return torch.randint(most, shape, device=device)


def plain(name, f, *shapes, dtype=torch.float32):
    """f of tensors of these shapes, without history."""

    def setup():
        operands = [numbers(*s).to(dtype) for s in shapes]

        def run():
            with torch.no_grad():
                f(*operands)

        return run

    timer.row(name, setup)


def gradient(name, f, *shapes):
    """f and the gradients of all its operands, from a cotangent of ones."""

    def setup():
        operands = [tracked(*s) for s in shapes]
        ones = torch.ones_like(f(*operands))
        return lambda: torch.autograd.grad(f(*operands), operands, ones)

    timer.row(name, setup)


plain("copy.device", torch.clone, (n,))
timer.row("copy.to_device", lambda: (lambda x: lambda: x.to(device))(numbers(n).cpu()))
plain("copy.to_host", lambda x: x.cpu(), (n,))

plain("ew.add", torch.add, (n,), (n,))
plain("ew.relu", torch.relu, (n,))
plain("ew.exp", torch.exp, (n,))
plain("ew.tanh", torch.tanh, (n,))
plain("ew.add_f16", torch.add, (n,), (n,), dtype=torch.float16)
plain("ew.cast_f32_f16", lambda x: x.to(torch.float16), (n,))
plain("ew.bias", torch.add, (side, side), (side,))
plain("ew.gelu", lambda x: (x * 0.5) * (torch.tanh((x + x * x * x * 0.044715) * 0.7978845608) + 1.0), (n,))

plain("red.all", torch.sum, (side, side))
plain("red.columns", lambda x: x.sum(0), (side, side))
plain("red.rows", lambda x: x.sum(1), (side, side))
plain("red.long_rows", lambda x: x.sum(1), (16, n // 16))
plain("red.nchw", lambda x: x.sum((0, 2, 3)), (side // 64, 64, 8, side // 8))
plain("red.max_rows", lambda x: x.amax(1), (side, side))
plain("red.argmax_rows", lambda x: x.argmax(1), (side, side))
plain("red.cumsum", lambda x: x.cumsum(1), (side, side))
plain("red.cumsum_all", lambda x: x.cumsum(0), (n,))

plain("nn.softmax", lambda x: F.softmax(x, 1), (side, side))


def sparse_cross_entropy():
    z, t = tracked(side, side), integers(side, side)
    return lambda: torch.autograd.grad(F.cross_entropy(z, t), z)


timer.row("nn.sparse_ce_fb", sparse_cross_entropy)


def arranged(x, layout):
    return x.contiguous(memory_format=torch.channels_last) if layout == ".cl" else x


def normalised(layout, back):
    x, dy = (arranged(numbers(images, 64, pixels, pixels), layout) for _ in range(2))
    scale, offset = torch.ones(64, device=device), torch.zeros(64, device=device)
    operands = [x.requires_grad_(back), scale.requires_grad_(back), offset.requires_grad_(back)]

    def forward():
        return F.batch_norm(x, None, None, scale, offset, training=True, eps=1e-3)

    if back:
        return lambda: torch.autograd.grad(forward(), operands, dy)
    return forward


def convolved(layout, back):
    x = arranged(numbers(images, 64, pixels, pixels), layout).requires_grad_(back)
    kernel = arranged(numbers(64, 64, 3, 3), layout).requires_grad_(back)
    if back:
        ones = torch.ones_like(x)
        return lambda: torch.autograd.grad(F.conv2d(x, kernel, padding=1), (x, kernel), ones)
    return lambda: F.conv2d(x, kernel, padding=1)


for layout in (".cl", ".cf"):
    timer.row(f"nn.bn_f{layout}", lambda l=layout: normalised(l, False))
    timer.row(f"nn.bn_fb{layout}", lambda l=layout: normalised(l, True))
    timer.row(f"conv.c3x3_f{layout}", lambda l=layout: convolved(l, False))
    timer.row(f"conv.c3x3_fb{layout}", lambda l=layout: convolved(l, True))

plain("nn.dropout", lambda x: F.dropout(x, 0.5), (n,))
timer.row("rnd.uniform", lambda: lambda: torch.rand(n, device=device))


def gather_back():
    w = tracked(classes, features)
    y = (w[integers(classes, picked)] * numbers(picked, features)).sum()
    return lambda: torch.autograd.grad(y, w, retain_graph=True)


timer.row("idx.gather", lambda: (lambda w, i: lambda: w[i])(numbers(classes, features), integers(classes, picked)))
timer.row("idx.gather_b", gather_back)
plain("idx.transpose", lambda x: x.t().contiguous(), (side, side))
plain("idx.nchw_to_nhwc", lambda x: x.permute(0, 2, 3, 1).contiguous(), (images, 64, pixels, pixels))

for dtype in ("float32", "float16", "bfloat16", "float64"):
    plain(f"mm.{dtype}", torch.matmul, (size, size), (size, size), dtype=getattr(torch, dtype))
plain("mm.batched", torch.matmul, (size // 4, 128, 128), (size // 4, 128, 128))


def descent(network, shapes, x, labels):
    """One step of plain gradient descent on weights of these shapes, and a bias for each."""
    ps = []
    for shape in shapes:
        ps.append(torch.randn(shape, device=device).mul_(0.05).requires_grad_())
        ps.append(torch.zeros(shape[0], device=device, requires_grad=True))

    def run():
        gradients = torch.autograd.grad(F.cross_entropy(network(ps, x), labels), ps)
        with torch.no_grad():
            for p, g in zip(ps, gradients):
                p.sub_(g, alpha=0.01)

    return run


def mlp():
    def network(ps, x):
        return F.linear(torch.relu(F.linear(x, ps[0], ps[1])), ps[2], ps[3])

    return descent(network, ((128, 64), (10, 128)), numbers(32, 64), integers(10, 32))


def lenet():
    def network(ps, x):
        h = F.max_pool2d(torch.relu(F.conv2d(x, ps[0], ps[1])), 2)
        h = F.max_pool2d(torch.relu(F.conv2d(h, ps[2], ps[3])), 2).reshape(batch, 1600)
        return F.linear(torch.relu(F.linear(h, ps[4], ps[5])), ps[6], ps[7])

    shapes = ((32, 1, 3, 3), (64, 32, 3, 3), (128, 1600), (10, 128))
    return descent(network, shapes, numbers(batch, 1, 28, 28), integers(10, batch))


def lstm():
    net, x = torch.nn.LSTM(64, 128, batch_first=True).to(device), tracked(32, times, 64)
    wanted = [x, *net.parameters()]
    return lambda: torch.autograd.grad(net(x)[0].sum(), wanted)


def adam_step():
    w = tracked(adam)
    optimiser = torch.optim.Adam([w], lr=1e-3, fused=device.type == "cuda")

    def run():
        optimiser.zero_grad()
        w.square().sum().backward()
        optimiser.step()

    return run


timer.row("train.mlp", mlp)
timer.row("train.lstm", lstm)
timer.row("train.lenet", lenet)
timer.row("train.adam", adam_step)


def repeated(name, f, *operands):
    """What an op costs the host, since the device has next to nothing to do."""

    def run():
        for _ in range(adds):
            f(*operands)

    timer.row("small." + name, lambda: run, adds)


four, here = numbers(4), tracked(4)
repeated("add", torch.add, four, four)
repeated("add_tracked", torch.add, here, four)
repeated("sum", torch.sum, four)
repeated("matmul", torch.matmul, numbers(2, 2), numbers(2, 2))
repeated("add_mul_sum_fb", lambda a, b, c: torch.autograd.grad(((a + b) * c).sum(), a), here, four, four)

name = torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"
timer.run(o, peer="torch", version=str(torch.__version__), cuda=str(torch.version.cuda), name=str(name))
