"""torch.compile (inductor's C++ back end), called from Python."""

import logging
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import timer

o = timer.parse()
logging.disable(logging.WARNING)
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


def mlp_step(batch, widths):
    ps = []
    for m, n in zip(widths, widths[1:]):
        ps += [torch.randn(n, m).mul_(0.05).requires_grad_(), torch.zeros(n, requires_grad=True)]

    def network(ps, x, labels):
        h = x
        for i in range(0, len(ps) - 2, 2):
            h = torch.relu(F.linear(h, ps[i], ps[i + 1]))
        return F.cross_entropy(F.linear(h, ps[-2], ps[-1]), labels)

    loss = wrapped(network)
    update = wrapped(lambda ps, gs: [p.sub_(g, alpha=0.01) for p, g in zip(ps, gs)])
    x, labels = uniform(batch, widths[0]), torch.randint(widths[-1], (batch,))

    def run():
        gradients = torch.autograd.grad(loss(ps, x, labels), ps)
        with torch.no_grad():
            update(ps, gradients)

    return run


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

timer.run(o, peer="torch-compile", version=torch.__version__)
