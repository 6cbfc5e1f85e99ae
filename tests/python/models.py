"""Five small models, their data and their training, written for tf.keras and for Keras 2.3.1 alike.

    python models.py tensorflow.npz       with TensorFlow 2.15: writes initial weights, losses of 24 steps and weights after them
"""
import sys

import numpy as np

STEPS, BATCH = 24, 16


def lstm(keras):
    L = keras.layers
    return (keras.models.Sequential([L.LSTM(12, recurrent_activation="sigmoid", input_shape=(9, 5)), L.Dense(3, activation="softmax")]),
            "adam", "categorical_crossentropy", (9, 5), 3)


def gru(keras):
    L = keras.layers
    return (keras.models.Sequential([L.GRU(10, reset_after=False, recurrent_activation="sigmoid", return_sequences=True, input_shape=(7, 4)),
                                     L.GRU(8, reset_after=False, recurrent_activation="sigmoid"), L.Dense(2)]),
            "rmsprop", "mse", (7, 4), 2)


def bidirectional(keras):
    L = keras.layers
    return (keras.models.Sequential([L.Bidirectional(L.LSTM(6, recurrent_activation="sigmoid"), input_shape=(8, 5)), L.Dense(1, activation="sigmoid")]),
            "sgd", "binary_crossentropy", (8, 5), 1)


def mlp(keras):
    L = keras.layers
    return (keras.models.Sequential([L.Dense(24, input_shape=(10,)), L.BatchNormalization(), L.Activation("relu"), L.Dense(16, activation="tanh"),
                                     L.BatchNormalization(), L.Dense(4, activation="softmax")]),
            "sgd", "categorical_crossentropy", (10,), 4)


def cnn(keras):
    L = keras.layers
    return (keras.models.Sequential([L.Conv2D(6, 3, padding="same", activation="relu", input_shape=(12, 12, 2)), L.MaxPooling2D(),
                                     L.Conv2D(8, 3, activation="relu"), L.AveragePooling2D(padding="same"), L.Flatten(), L.Dense(5, activation="softmax")]),
            "adam", "categorical_crossentropy", (12, 12, 2), 5)


MODELS = {f.__name__: f for f in (lstm, gru, bidirectional, mlp, cnn)}


def data(name, shape, outputs, loss):
    r = np.random.RandomState(sorted(MODELS).index(name))
    x = r.normal(size=(STEPS, BATCH) + shape).astype("float32")
    if loss == "categorical_crossentropy":
        y = np.eye(outputs, dtype="float32")[r.randint(outputs, size=(STEPS, BATCH))]
    elif loss == "binary_crossentropy":
        y = r.randint(2, size=(STEPS, BATCH, outputs)).astype("float32")
    else:
        y = r.normal(size=(STEPS, BATCH, outputs)).astype("float32")
    return x, y


def optimizer(keras, name):
    """Those with the formulas of Keras 2.3: tf.keras has them under `legacy`."""
    O = getattr(keras.optimizers, "legacy", keras.optimizers)
    rate = "lr" if O is keras.optimizers else "learning_rate"
    return {"adam": lambda: O.Adam(**{rate: 0.01}), "rmsprop": lambda: O.RMSprop(**{rate: 0.005}),
            "sgd": lambda: O.SGD(**{rate: 0.05}, momentum=0.9, nesterov=True)}[name]()


def train(keras, name, weights=None):
    """(initial weights, losses, weights after the last step)"""
    model, rule, loss, shape, outputs = MODELS[name](keras)
    model.compile(optimizer=optimizer(keras, rule), loss=loss)
    if weights is not None:
        model.set_weights(weights)
    first = model.get_weights()
    x, y = data(name, shape, outputs, loss)
    losses = [model.train_on_batch(x[i], y[i]) for i in range(STEPS)]
    return first, np.array(losses, "float32"), model.get_weights()


if __name__ == "__main__":
    import tensorflow as tf

    tf.random.set_seed(1)
    arrays = {}
    for name in MODELS:
        first, losses, last = train(tf.keras, name)
        arrays[name + ".losses"] = losses
        for i, (a, b) in enumerate(zip(first, last)):
            arrays[f"{name}.first.{i}"], arrays[f"{name}.last.{i}"] = a, b
    np.savez_compressed(sys.argv[1], **arrays)
