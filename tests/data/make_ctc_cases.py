"""Writes tests/data/ctc_cases.txt: what tf.keras.backend and PyTorch make of given tensors.

    {python of TensorFlow 2.15} make_ctc_cases.py tensorflow > ctc_cases.txt
    {python of PyTorch 2} make_ctc_cases.py pytorch >> ctc_cases.txt

A line is read like those of keras_cases.txt: function, tensors, arguments -> result | gradients. The gradient is by the scores,
of the sum of the costs; of ctc_decode the result is the log-probabilities, and the decoded paths follow behind the bar.
PyTorch computes in float64, from the logarithms of the scores with epsilon added and normalised; its blank is the last class.
"""
import sys

import numpy as np

rng = np.random.RandomState(5)
EPSILON = 1e-7


def text(a, dtype=None):
    a = np.asarray(a, dtype)
    name = {"float32": "f4", "float64": "f8", "int32": "i4", "int64": "i8"}[a.dtype.name]
    form = "%.9g" if name == "f4" else "%.12g" if name == "f8" else "%d"
    return "%s[%s]=%s" % (name, ",".join(map(str, a.shape)), ",".join(form % v for v in a.ravel()))


def scores(shape, sharpness=2.0):
    z = np.exp(rng.normal(size=shape) * sharpness)
    return (z / z.sum(-1, keepdims=True)).astype("float32")


def column(*v):
    return np.array(v, "int32").reshape(-1, 1)


def labels(shape, classes):
    return rng.randint(0, classes - 1, shape).astype("int32")


def cost_cases():
    for n, t, c, l in [(1, 4, 3, 2), (2, 7, 4, 3), (3, 12, 6, 5), (2, 20, 3, 9), (2, 33, 10, 8)]:
        for sharpness in (0.5, 3.0):
            yield scores((n, t, c), sharpness), labels((n, l), c), column(*rng.randint(max(1, t - 3), t + 1, n)), column(*rng.randint(1, l + 1, n))
    y = scores((2, 5, 4))
    yield y, np.array([[1, 1, 1], [0, 2, 2]], "int32"), column(5, 4), column(3, 3)   # repeated
    yield y, np.array([[1, 1, 1], [0, 2, 2]], "int32"), column(4, 3), column(3, 3)   # impossible
    one_hot = np.eye(4, dtype="float32")[[[3, 0, 3, 1, 3, 2, 3], [0, 0, 1, 1, 2, 2, 3]]]
    yield one_hot, np.array([[0, 1, 2], [2, 1, 0]], "int32"), column(7, 7), column(3, 3)   # certain, and certainly wrong
    yield np.float32(5) * y, np.array([[1, 2, 0], [0, 1, 2]], "int32"), column(5, 5), column(2, 3)   # not normalised


def tensorflow():
    import os
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    import tensorflow as tf
    K = tf.keras.backend
    print("# Written by make_ctc_cases.py, which says how to read it, with TensorFlow %s." % tf.__version__)

    def cost(y, ids, steps, lengths):
        x = tf.constant(y)
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = K.ctc_batch_cost(tf.constant(ids), x, tf.constant(steps), tf.constant(lengths))
        print("ctc_batch_cost", text(ids), text(y), text(steps), text(lengths), "->", text(loss), "|", text(tape.gradient(loss, x)))

    for case in cost_cases():
        cost(*case)
    y = scores((2, 5, 4))
    cost(y, np.array([[0, 3, 3], [1, 9, 7]], "int32"), column(5, 5), column(3, 3))   # ended by the blank's class and beyond
    cost(y, np.array([[0, 3, 0], [1, -1, -1]], "int32"), column(5, 5), column(2, 1))
    cost(y, np.array([[0, 1, 2], [1, 0, 0]], "int32"), column(5, 5), column(7, 2))   # more than there are

    def decode(y, steps, **given):
        """Paths are cut to the longest, as Keras 2.3 has them, where tf.keras pads them to the time steps. It lost merge_repeated."""
        if given.get("greedy", 1):
            paths, score = K.ctc_decode(tf.constant(y), tf.constant(steps))
        else:
            log = tf.math.log(tf.transpose(tf.constant(y), (1, 0, 2)) + EPSILON)
            options = {k: given[k] for k in ("beam_width", "top_paths")}
            sparse, score = tf.compat.v1.nn.ctc_beam_search_decoder(log, tf.constant(steps), merge_repeated=bool(given["merge_repeated"]), **options)
            paths = [tf.sparse.to_dense(p, -1) for p in sparse]
        paths = [p.numpy()[:, : (p.numpy() >= 0).sum(1).max()] for p in paths]
        print("ctc_decode", text(y), text(steps), *("%s=%d" % a for a in given.items()), "->", text(score), "|", *map(text, paths))

    for n, t, c in [(1, 4, 3), (3, 9, 4), (2, 15, 6)]:
        for sharpness in (0.7, 3.0):
            y, steps = scores((n, t, c), sharpness), rng.randint(max(2, t - 4), t + 1, n).astype("int32")
            decode(y, steps)
            for width, paths in [(1, 1), (2, 2), (5, 3), (30, 4)]:
                for merge in (0, 1):
                    decode(y, steps, greedy=0, beam_width=width, top_paths=paths, merge_repeated=merge)
    y = scores((2, 30, 12), 1.5)
    decode(y, np.array([30, 24], "int32"), greedy=0, beam_width=100, top_paths=2, merge_repeated=0)
    decode(np.float32(7) * y, np.array([30, 24], "int32"), greedy=0, beam_width=20, top_paths=1, merge_repeated=0)
    decode(np.float32(7) * y, np.array([0, 24], "int32"))
    decode(y, np.array([0, 24], "int32"), greedy=0, beam_width=20, top_paths=1, merge_repeated=0)


def pytorch():
    import torch
    print("# Written by make_ctc_cases.py with PyTorch %s." % torch.__version__.split("+")[0])
    for y, ids, steps, lengths in list(cost_cases()) + [(scores((2, 120, 5)), labels((2, 30), 5), column(120, 101), column(30, 17))]:
        y = np.round(y.astype("float64"), 6)
        x = torch.tensor(y, dtype=torch.float64, requires_grad=True)
        logs = torch.log_softmax(torch.log(x + EPSILON), 2).transpose(0, 1)
        loss = torch.nn.functional.ctc_loss(logs, torch.tensor(ids), torch.tensor(steps[:, 0]), torch.tensor(lengths[:, 0]), blank=y.shape[2] - 1,
                                            reduction="none")
        if not torch.isfinite(loss).all():
            continue   # its gradient is NaN there
        loss.sum().backward()
        print("ctc_batch_cost", text(ids), text(y), text(steps), text(lengths), "->", text(loss.detach().numpy()[:, None]), "|",
              text(x.grad.numpy()))


{"tensorflow": tensorflow, "pytorch": pytorch}[sys.argv[1]]()
