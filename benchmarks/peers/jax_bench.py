"""JAX on the CPU: every row is a jitted function, called with device arrays and waited for."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import timer

o = timer.parse()
if o.threads == 1:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # the pool follows the affinity mask
os.environ["JAX_PLATFORMS"] = "cpu"
import array_rows
import inputs
import jax
import jax.numpy as jnp


def uniform(*shape):
    return jnp.asarray(inputs.uniform(*shape))


def integers(most, *shape):
    return jnp.asarray(inputs.integers(most, *shape))


def jitted(f, *operands):
    compiled = jax.jit(f)
    return lambda: jax.block_until_ready(compiled(*operands))


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


def descent(loss, parameters, x, labels):
    """One step of plain gradient descent."""

    def step(ps, x, labels):
        value, gradients = jax.value_and_grad(loss)(ps, x, labels)
        return value, [p - 0.01 * g for p, g in zip(ps, gradients)]

    compiled = jax.jit(step, donate_argnums=(0,))
    state = [parameters]

    def run():
        _, state[0] = compiled(state[0], x, labels)
        jax.block_until_ready(state[0])

    return run


def mlp_step(batch, widths):
    parameters = []
    for m, n in zip(widths, widths[1:]):
        parameters += [jnp.asarray(inputs.weights(m, n)), jnp.zeros(n)]

    def loss(ps, x, labels):
        h = x
        for i in range(0, len(ps) - 2, 2):
            h = jax.nn.relu(h @ ps[i] + ps[i + 1])
        logits = jax.nn.log_softmax(h @ ps[-2] + ps[-1])
        return -jnp.mean(jnp.take_along_axis(logits, labels[:, None], 1))

    return descent(loss, parameters, uniform(batch, widths[0]), integers(widths[-1], batch))


def mlp_loop():
    step = mlp_step(32, [64, 128, 10])
    return timer.peak_of(lambda: [step() for _ in range(1000)])


def lstm(parameters, x):
    kernel, recurrent, bias = parameters
    projected = jnp.swapaxes(x @ kernel + bias, 0, 1)
    start = jnp.zeros((x.shape[0], recurrent.shape[0]))

    def step(states, z):
        h, cell = states
        i, f, g, out = jnp.split(z + h @ recurrent, 4, axis=1)
        cell = jax.nn.sigmoid(f) * cell + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(out) * jnp.tanh(cell)
        return (h, cell), h

    return jnp.swapaxes(jax.lax.scan(step, (start, start), projected)[1], 0, 1)


def lstm_row(f):
    parameters = [jnp.asarray(inputs.weights(64, 512)), jnp.asarray(inputs.weights(128, 512)), jnp.zeros(512)]
    return jitted(f, parameters, uniform(32, 50, 64))


timer.row("train.lstm_f", lambda: lstm_row(lstm))
timer.row("train.lstm_fb", lambda: lstm_row(jax.grad(lambda p, x: lstm(p, x).sum(), argnums=(0, 1))))
timer.row("train.mlp_b32", lambda: mlp_step(32, [64, 128, 10]))
timer.own_process("mem.mlp_b32_1000", mlp_loop)


def chain10(x):
    return (x * 0.5) * (jnp.tanh((x + x * x * x * 0.044715) * 0.7978845608) + 1.0) + x


for size, tag in inputs.LENGTHS:
    timer.row(f"ew.add.{tag}", lambda n=size: jitted(lambda a, b: a + b, uniform(n), uniform(n)))
    timer.row(f"ew.mul.{tag}", lambda n=size: jitted(lambda a, b: a * b, uniform(n), uniform(n)))
    timer.row(f"ew.relu.{tag}", lambda n=size: jitted(lambda a: jnp.maximum(a, 0), uniform(n)))
    timer.row(f"ew.exp.{tag}", lambda n=size: jitted(jnp.exp, uniform(n)))
timer.row("ew.chain10.1e7", lambda: jitted(chain10, uniform(10000000)))

for size, tag in inputs.LENGTHS:
    timer.row(f"ew.tanh.{tag}", lambda n=size: jitted(jnp.tanh, uniform(n)))
    timer.row(f"ew.sigmoid.{tag}", lambda n=size: jitted(jax.nn.sigmoid, uniform(n)))
    timer.row(f"ew.pow.{tag}", lambda n=size: jitted(lambda a: a**1.7, uniform(n)))
timer.row(
    "ew.remainder.1e5", lambda: jitted(jnp.remainder, uniform(100000) * 100, uniform(100000))
)
timer.row(
    "ew.floor_divide.1e5", lambda: jitted(jnp.floor_divide, uniform(100000) * 100, uniform(100000))
)
timer.row(
    "ew.cast_f32_i32.1e7", lambda: jitted(lambda a: a.astype(jnp.int32), uniform(10000000) * 100)
)
timer.row(
    "ew.cast_i32_f32.1e7", lambda: jitted(lambda a: a.astype(jnp.float32), integers(1000, 10000000))
)
timer.row("red.sum_ax1", lambda: jitted(lambda a: a.sum(1), uniform(4096, 4096)))
timer.row("red.argmax_ax1", lambda: jitted(lambda a: a.argmax(1), uniform(4096, 4096)))
timer.row("red.cumsum_ax1", lambda: jitted(lambda a: a.cumsum(1), uniform(4096, 4096)))
timer.row("red.softmax_1000x10000", lambda: jitted(jax.nn.softmax, uniform(1000, 10000)))
timer.row("red.softmax_128x10", lambda: jitted(jax.nn.softmax, uniform(128, 10)))
for name, (x, y) in inputs.PRODUCTS.items():
    timer.row(f"mm.{name}", lambda x=x, y=y: jitted(jnp.matmul, uniform(*x), uniform(*y)))
for name, x, y in (("nt1024", 1024, 1024), ("nt_m32_k128_n64", (32, 128), (64, 128))):
    x, y = ((x, x), (y, y)) if isinstance(x, int) else (x, y)
    timer.row(f"mm.{name}", lambda x=x, y=y: jitted(lambda a, b: a @ b.T, uniform(*x), uniform(*y)))
for name, x, y in (("tn1024", 1024, 1024), ("tn_k32_64x128", (32, 64), (32, 128))):
    x, y = ((x, x), (y, y)) if isinstance(x, int) else (x, y)
    timer.row(f"mm.{name}", lambda x=x, y=y: jitted(lambda a, b: a.T @ b, uniform(*x), uniform(*y)))
timer.row(
    "idx.gather_f",
    lambda: jitted(lambda w, i: w[i], uniform(50000, 128), integers(50000, 4096)),
)
timer.row(
    "idx.gather_b",
    lambda: jitted(
        lambda w, i, dy: jax.vjp(lambda w: w[i], w)[1](dy),
        uniform(50000, 128),
        integers(50000, 4096),
        uniform(4096, 128),
    ),
)
timer.row(
    "idx.transpose0231", lambda: jitted(lambda a: a.transpose(0, 2, 3, 1), uniform(32, 64, 56, 56))
)
timer.row("idx.transpose2d_4096", lambda: jitted(lambda a: a.T, uniform(4096, 4096)))


def cross_entropy(z, t):
    return -(t * jax.nn.log_softmax(z)).sum(1).mean()


def sparse_cross_entropy(z, t):
    return -jnp.take_along_axis(jax.nn.log_softmax(z), t[:, None], 1).mean()


timer.row(
    "nn.softmax_ce_1024x1000_fb",
    lambda: jitted(
        jax.value_and_grad(cross_entropy),
        uniform(1024, 1000),
        jax.nn.one_hot(integers(1000, 1024), 1000),
    ),
)
timer.row(
    "nn.sparse_ce_1024x1000_fb",
    lambda: jitted(
        jax.value_and_grad(sparse_cross_entropy), uniform(1024, 1000), integers(1000, 1024)
    ),
)


def clipped(p):
    return jnp.clip(p, 1e-7, 1 - 1e-7)


def probability_loss(p, t):
    return -(t * jnp.log(clipped(p / p.sum(1, keepdims=True)))).sum(1).mean()


def sparse_probability_loss(p, t):
    q = clipped(p)
    return (jnp.log(q.sum(1)) - jnp.log(jnp.take_along_axis(q, t[:, None], 1)[:, 0])).mean()


def binary_loss(p, t):
    q = clipped(p)
    return -(t * jnp.log(q) + (1 - t) * jnp.log(1 - q)).mean()


def probabilities():
    return jax.nn.softmax(uniform(1024, 1000))


timer.row(
    "nn.prob_ce_1024x1000_fb",
    lambda: jitted(
        jax.value_and_grad(probability_loss),
        probabilities(),
        jax.nn.one_hot(integers(1000, 1024), 1000),
    ),
)
timer.row(
    "nn.sparse_prob_ce_1024x1000_fb",
    lambda: jitted(
        jax.value_and_grad(sparse_probability_loss), probabilities(), integers(1000, 1024)
    ),
)
timer.row(
    "nn.binary_ce_1024x1000_fb",
    lambda: jitted(
        jax.value_and_grad(binary_loss), uniform(1024, 1000) * 0.9, uniform(1024, 1000)
    ),
)


def normalised(x, scale, offset):
    mean = x.mean((0, 1, 2))
    variance = ((x - mean) ** 2).mean((0, 1, 2))
    return (x - mean) * jax.lax.rsqrt(variance + 1e-3) * scale + offset


parameters = (jnp.ones(64), jnp.zeros(64))
timer.row(
    "nn.bn_56x64_f.cl", lambda: jitted(normalised, uniform(32, 56, 56, 64), *parameters)
)
timer.row(
    "nn.bn_56x64_b.cl",
    lambda: jitted(
        lambda x, g, b, dy: jax.vjp(normalised, x, g, b)[1](dy),
        uniform(32, 56, 56, 64),
        *parameters,
        uniform(32, 56, 56, 64),
    ),
)



def forward_and_back(name, layout, f, *shapes):
    """f and its gradients, from a cotangent that is given."""

    def back():
        operands = [uniform(*s) - 0.6 for s in shapes]
        ones = jnp.ones_like(f(*operands))

        def both(dy, *operands):
            y, pullback = jax.vjp(f, *operands)
            return y, pullback(dy)

        return jitted(both, ones, *operands)

    timer.row(f"{name}_f{layout}", lambda: jitted(f, *(uniform(*s) - 0.6 for s in shapes)))
    timer.row(f"{name}_fb{layout}", back)


def convolution(name, x, kernel, stride, layout):
    space = "DHW"[5 - len(x) :]
    data = f"N{space}C" if layout == ".cl" else f"NC{space}"
    numbers = (data, f"{space}IO", data)
    depthwise, transposed = name.startswith("dw"), name.startswith("t4x4")
    padding = [(4, 0)] if name == "c1d_k5" and layout == ".cl" else "SAME"
    if depthwise:
        kernel = (*kernel[:2], 1, kernel[2])
    if transposed:  # jax has the input channels before the output channels here as well
        kernel = (*kernel[:2], kernel[3], kernel[2])

    def f(x, k):
        if transposed:
            return jax.lax.conv_transpose(x, k, (stride, stride), padding, dimension_numbers=numbers)
        groups = x.shape[data.index("C")] if depthwise else 1
        return jax.lax.conv_general_dilated(
            x, k, (stride,) * len(space), padding, dimension_numbers=numbers, feature_group_count=groups
        )

    shape = x if layout == ".cl" else inputs.channels_first(x)
    forward_and_back(f"conv.{name}", layout, f, shape, kernel)


def pooled(x, start, op):
    return jax.lax.reduce_window(x, start, op, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def max_pool(x):
    return pooled(x, -jnp.inf, jax.lax.max)


for name, (x, kernel, stride) in inputs.CONVOLUTIONS.items():
    for layout in (".cl", ".cf"):
        convolution(name, x, kernel, stride, layout)
forward_and_back("pool.max2_56x64", ".cl", max_pool, inputs.IMAGES)
forward_and_back("pool.avg2_56x64", ".cl", lambda x: pooled(x, 0.0, jax.lax.add) / 4, inputs.IMAGES)
forward_and_back(
    "pool.resize2_56x64",
    ".cl",
    lambda x: jax.image.resize(x, (8, 112, 112, 64), "bilinear"),
    inputs.IMAGES,
)


def cnn_step():
    parameters = []
    for shape in ((3, 3, 1, 32), (3, 3, 32, 64), (1600, 128), (128, 10)):
        parameters += [jnp.asarray(inputs.weights(*shape)), jnp.zeros(shape[-1])]

    def convolved(x, kernel, bias):
        numbers = ("NHWC", "HWIO", "NHWC")
        y = jax.lax.conv_general_dilated(x, kernel, (1, 1), "VALID", dimension_numbers=numbers)
        return max_pool(jax.nn.relu(y + bias))

    def loss(ps, x, labels):
        h = convolved(convolved(x, ps[0], ps[1]), ps[2], ps[3]).reshape(64, 1600)
        h = jax.nn.relu(h @ ps[4] + ps[5])
        return sparse_cross_entropy(h @ ps[6] + ps[7], labels)

    return descent(loss, parameters, uniform(64, 28, 28, 1), integers(10, 64))


timer.row("train.cnn_b64", cnn_step)

array_rows.add(
    jnp,
    lambda f, *arrays: jitted(f, *[jnp.asarray(a) for a in arrays]),
    cdist=None,
    top_k=lambda x: jax.lax.top_k(x, 10),
    erf=jax.scipy.special.erf,
    set_one=lambda x, v: x.at[2].set(v[0]),
    add_at=lambda x, i, v: x.at[i].add(v),
    segment_sum=lambda x, i: jax.ops.segment_sum(x, i, 1000),
    masks=False,
)


def attention(name, *, causal=False, back=False):
    """Batch 8, 512 positions, 8 heads of width 64."""

    def f(q, k, v):
        return jax.nn.dot_product_attention(q, k, v, is_causal=causal)

    def heads():
        return uniform(8, 512, 8, 64) - 0.6

    def setup():
        if back:
            g = jax.grad(lambda q, k, v, dy: (f(q, k, v) * dy).sum(), (0, 1, 2))
            return jitted(g, heads(), heads(), heads(), heads())
        return jitted(f, heads(), heads(), heads())

    timer.row(name, setup)


attention("nn.attention_f")
attention("nn.attention_fb", back=True)
attention("nn.attention_causal_f", causal=True)

timer.run(o, peer="jax", version=jax.__version__)
