"""TensorFlow on the CPU. --mode eager | fn (tf.function) | xla (tf.function, jit_compile)."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import timer

o = timer.parse()
mode = o.mode or "eager"
if o.threads == 1:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
import numpy as np
import tensorflow as tf

tf.config.threading.set_intra_op_parallelism_threads(o.threads)
tf.config.threading.set_inter_op_parallelism_threads(o.threads)
rng = np.random.default_rng(1)


def uniform(*shape):
    return tf.constant(rng.random(shape, dtype=np.float32) + np.float32(0.1))


def wrapped(f):
    return f if mode == "eager" else tf.function(f, jit_compile=mode == "xla")


def call(f, *inputs):
    f = wrapped(f)
    return lambda: f(*inputs)


def gradient(f):
    def run(x, *others):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x, *others)
        return tape.gradient(y, x)

    return run


ones = tf.ones(4)
timer.row("small.add", lambda: call(lambda a, b: a + b, ones, ones))
timer.row(
    "small.add_mul_sum_fb",
    lambda: call(gradient(lambda a, b, c: tf.reduce_sum((a + b) * c)), ones, ones, ones),
)
timer.row("small.matmul2", lambda: call(tf.matmul, tf.ones((2, 2)), tf.ones((2, 2))))
timer.row("small.sum4", lambda: call(tf.reduce_sum, ones))
timer.row("small.reshape", lambda: call(lambda a: tf.reshape(a, (2, 2)), ones))


def mlp_step(batch, widths):
    ps = []
    for m, n in zip(widths, widths[1:]):
        ps += [
            tf.Variable((rng.standard_normal((m, n)) * 0.05).astype(np.float32)),
            tf.Variable(np.zeros(n, np.float32)),
        ]

    def step(x, labels):
        with tf.GradientTape() as tape:
            h = x
            for i in range(0, len(ps) - 2, 2):
                h = tf.nn.relu(tf.nn.bias_add(tf.matmul(h, ps[i]), ps[i + 1]))
            logits = tf.nn.bias_add(tf.matmul(h, ps[-2]), ps[-1])
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
        for p, g in zip(ps, tape.gradient(loss, ps)):
            p.assign_sub(0.01 * g)
        return loss

    return call(
        step,
        uniform(batch, widths[0]),
        tf.constant(rng.integers(0, widths[-1], batch).astype(np.int32)),
    )


def mlp_loop():
    step = mlp_step(32, [64, 128, 10])
    return timer.peak_of(lambda: [step() for _ in range(1000)])


timer.row("train.mlp_b32", lambda: mlp_step(32, [64, 128, 10]))
timer.own_process("mem.mlp_b32_1000", mlp_loop)


def chain10(x):
    return (x * 0.5) * (tf.tanh((x + x * x * x * 0.044715) * 0.7978845608) + 1.0) + x


for size, tag in ((1000, "1e3"), (100000, "1e5"), (10000000, "1e7")):
    timer.row(f"ew.add.{tag}", lambda n=size: call(lambda a, b: a + b, uniform(n), uniform(n)))
    timer.row(f"ew.mul.{tag}", lambda n=size: call(lambda a, b: a * b, uniform(n), uniform(n)))
    timer.row(f"ew.relu.{tag}", lambda n=size: call(tf.nn.relu, uniform(n)))
    timer.row(f"ew.exp.{tag}", lambda n=size: call(tf.exp, uniform(n)))
timer.row("ew.chain10.1e7", lambda: call(chain10, uniform(10000000)))
for size in (512, 1024):
    timer.row(f"mm.sq{size}", lambda n=size: call(tf.matmul, uniform(n, n), uniform(n, n)))

timer.run(o, peer=f"tf-{mode}", version=tf.__version__)
