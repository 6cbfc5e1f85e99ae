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
import inputs
import numpy as np
import tensorflow as tf

tf.config.threading.set_intra_op_parallelism_threads(o.threads)
tf.config.threading.set_inter_op_parallelism_threads(o.threads)


def uniform(*shape):
    return tf.constant(inputs.uniform(*shape))


def integers(most, *shape):
    return tf.constant(inputs.integers(most, *shape))


def wrapped(f):
    return f if mode == "eager" else tf.function(f, jit_compile=mode == "xla")


def call(f, *operands):
    f = wrapped(f)
    return lambda: f(*operands)


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


def descent(logits_of, shapes, x, labels):
    """One step of plain gradient descent on kernels of these shapes, and a bias for each."""
    ps = []
    for shape in shapes:
        ps += [tf.Variable(inputs.weights(*shape)), tf.Variable(tf.zeros(shape[-1]))]

    def step(x, labels):
        with tf.GradientTape() as tape:
            logits = logits_of(x, ps)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
        for p, g in zip(ps, tape.gradient(loss, ps)):
            p.assign_sub(0.01 * g)
        return loss

    return call(step, x, labels)


def mlp_step(batch, widths):
    def logits(x, ps):
        h = x
        for i in range(0, len(ps) - 2, 2):
            h = tf.nn.relu(tf.nn.bias_add(tf.matmul(h, ps[i]), ps[i + 1]))
        return tf.nn.bias_add(tf.matmul(h, ps[-2]), ps[-1])

    x, labels = uniform(batch, widths[0]), integers(widths[-1], batch)
    return descent(logits, zip(widths, widths[1:]), x, labels)


def cnn_step():
    def convolved(x, kernel, bias):
        h = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, kernel, 1, "VALID"), bias))
        return tf.nn.max_pool2d(h, 2, 2, "VALID")

    def logits(x, ps):
        h = convolved(convolved(x, ps[0], ps[1]), ps[2], ps[3])
        h = tf.nn.relu(tf.nn.bias_add(tf.matmul(tf.reshape(h, (64, 1600)), ps[4]), ps[5]))
        return tf.nn.bias_add(tf.matmul(h, ps[6]), ps[7])

    shapes = ((3, 3, 1, 32), (3, 3, 32, 64), (1600, 128), (128, 10))
    return descent(logits, shapes, uniform(64, 28, 28, 1), integers(10, 64))


def mlp_loop():
    step = mlp_step(32, [64, 128, 10])
    return timer.peak_of(lambda: [step() for _ in range(1000)])


def lstm(backward):
    layer = tf.keras.layers.LSTM(128, return_sequences=True)
    x = uniform(32, 50, 64)
    layer(x)

    def forward_and_back(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(layer(x))
        return tape.gradient(y, [x] + layer.trainable_variables)

    return call(forward_and_back if backward else layer, x)


timer.row("train.lstm_f", lambda: lstm(False))
timer.row("train.lstm_fb", lambda: lstm(True))
timer.row("train.mlp_b32", lambda: mlp_step(32, [64, 128, 10]))
timer.row("train.cnn_b64", cnn_step)
timer.own_process("mem.mlp_b32_1000", mlp_loop)


def chain10(x):
    return (x * 0.5) * (tf.tanh((x + x * x * x * 0.044715) * 0.7978845608) + 1.0) + x


for size, tag in inputs.LENGTHS:
    timer.row(f"ew.add.{tag}", lambda n=size: call(lambda a, b: a + b, uniform(n), uniform(n)))
    timer.row(f"ew.mul.{tag}", lambda n=size: call(lambda a, b: a * b, uniform(n), uniform(n)))
    timer.row(f"ew.relu.{tag}", lambda n=size: call(tf.nn.relu, uniform(n)))
    timer.row(f"ew.exp.{tag}", lambda n=size: call(tf.exp, uniform(n)))
timer.row("ew.chain10.1e7", lambda: call(chain10, uniform(10000000)))

for size, tag in inputs.LENGTHS:
    timer.row(f"ew.tanh.{tag}", lambda n=size: call(tf.tanh, uniform(n)))
    timer.row(f"ew.sigmoid.{tag}", lambda n=size: call(tf.sigmoid, uniform(n)))
    timer.row(f"ew.pow.{tag}", lambda n=size: call(lambda a: tf.pow(a, 1.7), uniform(n)))
timer.row(
    "ew.remainder.1e5", lambda: call(tf.math.floormod, uniform(100000) * 100, uniform(100000))
)
timer.row(
    "ew.floor_divide.1e5", lambda: call(tf.math.floordiv, uniform(100000) * 100, uniform(100000))
)
timer.row(
    "ew.cast_f32_i32.1e7",
    lambda: call(lambda a: tf.cast(a, tf.int32), uniform(10000000) * 100),
)
timer.row(
    "ew.cast_i32_f32.1e7",
    lambda: call(lambda a: tf.cast(a, tf.float32), integers(1000, 10000000)),
)
timer.row("red.sum_ax1", lambda: call(lambda a: tf.reduce_sum(a, 1), uniform(4096, 4096)))
timer.row("red.argmax_ax1", lambda: call(lambda a: tf.argmax(a, 1), uniform(4096, 4096)))
timer.row("red.cumsum_ax1", lambda: call(lambda a: tf.cumsum(a, 1), uniform(4096, 4096)))
timer.row("red.softmax_1000x10000", lambda: call(tf.nn.softmax, uniform(1000, 10000)))
timer.row("red.softmax_128x10", lambda: call(tf.nn.softmax, uniform(128, 10)))
for name, (x, y) in inputs.PRODUCTS.items():
    product = tf.matmul if len(y) > 1 else tf.linalg.matvec
    timer.row(f"mm.{name}", lambda f=product, x=x, y=y: call(f, uniform(*x), uniform(*y)))
timer.row(
    "mm.nt1024",
    lambda: call(
        lambda a, b: tf.matmul(a, b, transpose_b=True), uniform(1024, 1024), uniform(1024, 1024)
    ),
)
timer.row(
    "mm.tn1024",
    lambda: call(
        lambda a, b: tf.matmul(a, b, transpose_a=True), uniform(1024, 1024), uniform(1024, 1024)
    ),
)


def sparse():
    where = np.unique(inputs.integers(100000000, 1000000)).astype(np.int64)
    places = np.stack([where // 10000, where % 10000], 1)
    a = tf.sparse.SparseTensor(places, uniform(len(where)), (10000, 10000))
    return call(tf.sparse.sparse_dense_matmul, a, uniform(10000, 128))


timer.row("sparse.dot_1e4_1pct_128", sparse)
timer.row(
    "idx.gather_f", lambda: call(tf.gather, uniform(50000, 128), integers(50000, 4096))
)
timer.row(
    "idx.gather_b",
    lambda: call(
        lambda dy, i: tf.math.unsorted_segment_sum(dy, i, 50000),
        uniform(4096, 128),
        integers(50000, 4096),
    ),
)
timer.row(
    "idx.transpose0231",
    lambda: call(lambda a: tf.transpose(a, (0, 2, 3, 1)), uniform(32, 64, 56, 56)),
)
timer.row("idx.transpose2d_4096", lambda: call(tf.transpose, uniform(4096, 4096)))


def cross_entropy(z, t):
    return tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(t, z))


def sparse_cross_entropy(z, t):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(t, z))


timer.row(
    "nn.softmax_ce_1024x1000_fb",
    lambda: call(
        gradient(cross_entropy), uniform(1024, 1000), tf.one_hot(integers(1000, 1024), 1000)
    ),
)
timer.row(
    "nn.sparse_ce_1024x1000_fb",
    lambda: call(gradient(sparse_cross_entropy), uniform(1024, 1000), integers(1000, 1024)),
)


def keras_loss(name):
    """The mean of a loss of tf.keras.backend from probabilities."""
    loss = getattr(tf.keras.backend, name)
    return lambda p, t: tf.reduce_mean(loss(t, p))


def probabilities():
    return tf.nn.softmax(uniform(1024, 1000))


timer.row(
    "nn.prob_ce_1024x1000_fb",
    lambda: call(
        gradient(keras_loss("categorical_crossentropy")),
        probabilities(),
        tf.one_hot(integers(1000, 1024), 1000),
    ),
)
timer.row(
    "nn.sparse_prob_ce_1024x1000_fb",
    lambda: call(
        gradient(keras_loss("sparse_categorical_crossentropy")),
        probabilities(),
        integers(1000, 1024),
    ),
)
timer.row(
    "nn.binary_ce_1024x1000_fb",
    lambda: call(
        gradient(keras_loss("binary_crossentropy")),
        uniform(1024, 1000) * 0.9,
        uniform(1024, 1000),
    ),
)


def ctc_cost(p, labels):
    """The kernel of sparse labels, which Keras calls, from probabilities."""
    K = tf.keras.backend
    return tf.reduce_mean(
        K.ctc_batch_cost(labels, p, tf.fill((32, 1), 100), tf.fill((32, 1), 20))
    )


def beam_search(p):
    return tf.nn.ctc_beam_search_decoder(
        tf.math.log(tf.transpose(p, (1, 0, 2)) + 1e-7), tf.fill((32,), 100), beam_width=100
    )[0][0].values


def speech():
    return tf.nn.softmax(tf.random.stateless_normal((32, 100, 28), (1, 2)))


timer.row("nn.ctc_f.K", lambda: call(ctc_cost, speech(), integers(27, 32, 20)))
timer.row("nn.ctc_fb.K", lambda: call(gradient(ctc_cost), speech(), integers(27, 32, 20)))
timer.row("nn.ctc_beam100", lambda: call(beam_search, speech()))


def normalised(x, scale, offset):
    return tf.raw_ops.FusedBatchNormV3(
        x=x, scale=scale, offset=offset, mean=tf.zeros(64), variance=tf.ones(64), epsilon=1e-3
    )


def normalised_back():
    x, scale, offset = uniform(32, 56, 56, 64), tf.ones(64), tf.zeros(64)
    forward = normalised(x, scale, offset)
    return call(
        lambda dy, x, scale, mean, variance, third: tf.raw_ops.FusedBatchNormGradV3(
            y_backprop=dy,
            x=x,
            scale=scale,
            reserve_space_1=mean,
            reserve_space_2=variance,
            reserve_space_3=third,
            epsilon=1e-3,
        )[:3],
        uniform(32, 56, 56, 64),
        x,
        scale,
        *forward[3:6],
    )


timer.row(
    "nn.bn_56x64_f.cl",
    lambda: call(
        lambda x, g, b: normalised(x, g, b)[0], uniform(32, 56, 56, 64), tf.ones(64), tf.zeros(64)
    ),
)
timer.row("nn.bn_56x64_b.cl", normalised_back)



def forward_and_back(name, f, *shapes):
    """f and its gradients, from a cotangent that is given. Channels last: there is no other on the CPU."""

    def back():
        operands = [uniform(*s) - 0.6 for s in shapes]
        ones = tf.ones_like(f(*operands))

        def both(dy, *operands):
            with tf.GradientTape() as tape:
                tape.watch(operands)
                y = f(*operands)
            return y, tape.gradient(y, operands, output_gradients=dy)

        return call(both, ones, *operands)

    timer.row(f"{name}_f.cl", lambda: call(f, *(uniform(*s) - 0.6 for s in shapes)))
    timer.row(f"{name}_fb.cl", back)


def convolution(name, stride):
    if name == "c1d_k5":
        return lambda x, k: tf.nn.conv1d(tf.pad(x, ((0, 0), (4, 0), (0, 0))), k, 1, "VALID")
    if name == "c3d_k3":
        return lambda x, k: tf.nn.conv3d(x, k, (1,) * 5, "SAME")
    if name.startswith("dw"):
        return lambda x, k: tf.nn.depthwise_conv2d(x, k, (1,) * 4, "SAME")
    if name.startswith("t4x4"):
        return lambda x, k: tf.nn.conv2d_transpose(x, k, (8, 56, 56, 32), stride, "SAME")
    return lambda x, k: tf.nn.conv2d(x, k, stride, "SAME")


for name, (x, kernel, stride) in inputs.CONVOLUTIONS.items():
    forward_and_back(f"conv.{name}", convolution(name, stride), x, kernel)
forward_and_back("pool.max2_56x64", lambda x: tf.nn.max_pool2d(x, 2, 2, "VALID"), inputs.IMAGES)
forward_and_back("pool.avg2_56x64", lambda x: tf.nn.avg_pool2d(x, 2, 2, "VALID"), inputs.IMAGES)
forward_and_back(
    "pool.resize2_56x64", lambda x: tf.raw_ops.ResizeBilinear(images=x, size=(112, 112)), inputs.IMAGES
)

timer.run(o, peer=f"tf-{mode}", version=tf.__version__)
