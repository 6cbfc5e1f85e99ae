"""JAX on the CPU: every row is a jitted function, called with device arrays and waited for."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import timer

o = timer.parse()
if o.threads == 1:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # the pool follows the affinity mask
os.environ["JAX_PLATFORMS"] = "cpu"
import jax
import jax.numpy as jnp
import numpy as np

rng = np.random.default_rng(1)


def uniform(*shape):
    return jnp.asarray(rng.random(shape, dtype=np.float32) + np.float32(0.1))


def jitted(f, *inputs):
    compiled = jax.jit(f)
    return lambda: jax.block_until_ready(compiled(*inputs))


ones = jnp.ones(4)
timer.row("small.add", lambda: jitted(lambda a, b: a + b, ones, ones))
timer.row(
    "small.add_mul_sum_fb",
    lambda: jitted(jax.grad(lambda a, b, c: ((a + b) * c).sum()), ones, ones, ones),
)
timer.row("small.matmul2", lambda: jitted(lambda a, b: a @ b, jnp.ones((2, 2)), jnp.ones((2, 2))))
timer.row("small.sum4", lambda: jitted(jnp.sum, ones))
timer.row("small.create4", lambda: lambda: jnp.asarray([1.0, 2.0, 3.0, 4.0], dtype=jnp.float32))
timer.row("small.reshape", lambda: jitted(lambda a: a.reshape(2, 2), ones))


def mlp_step(batch, widths):
    parameters = []
    for m, n in zip(widths, widths[1:]):
        parameters += [
            jnp.asarray(rng.standard_normal((m, n)).astype(np.float32) * 0.05),
            jnp.zeros(n),
        ]

    def loss(ps, x, labels):
        h = x
        for i in range(0, len(ps) - 2, 2):
            h = jax.nn.relu(h @ ps[i] + ps[i + 1])
        logits = jax.nn.log_softmax(h @ ps[-2] + ps[-1])
        return -jnp.mean(jnp.take_along_axis(logits, labels[:, None], 1))

    def step(ps, x, labels):
        value, gradients = jax.value_and_grad(loss)(ps, x, labels)
        return value, [p - 0.01 * g for p, g in zip(ps, gradients)]

    compiled = jax.jit(step, donate_argnums=(0,))
    x, labels = uniform(batch, widths[0]), jnp.asarray(
        rng.integers(0, widths[-1], batch).astype(np.int32)
    )
    state = [parameters]

    def run():
        _, state[0] = compiled(state[0], x, labels)
        jax.block_until_ready(state[0])

    return run


def mlp_loop():
    step = mlp_step(32, [64, 128, 10])
    return timer.peak_of(lambda: [step() for _ in range(1000)])


timer.row("train.mlp_b32", lambda: mlp_step(32, [64, 128, 10]))
timer.own_process("mem.mlp_b32_1000", mlp_loop)


def chain10(x):
    return (x * 0.5) * (jnp.tanh((x + x * x * x * 0.044715) * 0.7978845608) + 1.0) + x


for size, tag in ((1000, "1e3"), (100000, "1e5"), (10000000, "1e7")):
    timer.row(f"ew.add.{tag}", lambda n=size: jitted(lambda a, b: a + b, uniform(n), uniform(n)))
    timer.row(f"ew.mul.{tag}", lambda n=size: jitted(lambda a, b: a * b, uniform(n), uniform(n)))
    timer.row(f"ew.relu.{tag}", lambda n=size: jitted(lambda a: jnp.maximum(a, 0), uniform(n)))
    timer.row(f"ew.exp.{tag}", lambda n=size: jitted(jnp.exp, uniform(n)))
timer.row("ew.chain10.1e7", lambda: jitted(chain10, uniform(10000000)))
for size in (512, 1024):
    timer.row(
        f"mm.sq{size}", lambda n=size: jitted(lambda a, b: a @ b, uniform(n, n), uniform(n, n))
    )

timer.run(o, peer="jax", version=jax.__version__)
