"""Writes tests/data/keras_rows.txt: what Keras gives for the rows of docs/from_keras.md.

    {python of Keras 2.3.1 and TensorFlow 1.15} make_keras_rows.py > keras_rows.txt

A line: the left cell of the row, a tab, the shape, a tab, the elements; a cell of several results has a line for each.
tests/nn_backend/from_keras_test.cpp computes the right cells, from the same inputs.
"""
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import keras
import numpy as np
import tensorflow as tf
from keras import backend as K

K.set_floatx("float64")


def input(*shape, seed=0):
    """Multiples of 1/4, which every dtype holds."""
    return K.constant(((np.arange(np.prod(shape)) * 7 + seed) % 11 - 5).reshape(shape) / 4)


m, p = input(2, 3), input(3, 4, seed=1)
b, c = input(2, 3, 4), input(2, 4, 5, seed=2)
state = input(2, 4, seed=3)
mask = K.constant(np.array([[1, 0, 1], [0, 1, 1]]), dtype="bool")


def step(x, states):
    y = x + states[0] * .5
    return y, [y]


ROWS = {
    "`K.sum(x, axis=1, keepdims=True)`": lambda: [K.sum(b, axis=1, keepdims=True)],
    "`K.sum(x, axis=[0, -1])`": lambda: [K.sum(b, axis=[0, -1])],
    "`K.switch(c, a, b)`": lambda: [K.switch(K.greater(m, 0), m, 2 * m)],
    "`x ** 2`, `x // y`": lambda: [b ** 2, b // K.constant(.75)],
    "`x @ y`": lambda: [m @ p, b @ c],
    "`x[:, 1:3]`, `x[..., ::-1]`": lambda: [b[:, 1:3], b[..., ::-1]],
    "`a, b, c = K.rnn(...)`": lambda: (lambda last, all, states: [last, all, states[0]])(*K.rnn(step, b, [state])),
    "`K.rnn(step, x, s, mask=m)`": lambda: (lambda last, all, states: [last, all, states[0]])(*K.rnn(step, b, [state], mask=mask)),
}

print("# Written by make_keras_rows.py, which says how to read it, with Keras %s and TensorFlow %s." % (keras.__version__, tf.__version__))
for row, compute in ROWS.items():
    for result in compute():
        value = K.eval(result)
        print(row, ",".join(map(str, value.shape)), " ".join("%.12g" % x for x in value.ravel()), sep="\t")
