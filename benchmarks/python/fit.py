"""Seconds per step of Keras' fit on four models; the same file for Keras 2.3.1 on kassette and for tf.keras: fit.py [tf]. One JSON line."""
import json
import os
import sys
import time

import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
if sys.argv[1:] == ["tf"]:
    import tensorflow as tf
    from tensorflow import keras
    tf.config.threading.set_intra_op_parallelism_threads(int(os.environ.get("KASSETTE_NUM_THREADS", "0")))
    adam = keras.optimizers.legacy.Adam
else:
    import keras
    adam = keras.optimizers.Adam
L, Sequential = keras.layers, keras.models.Sequential

MODELS = {
    "tiny_mlp": (lambda: [L.Dense(16, activation="relu", input_shape=(8,)), L.Dense(4, activation="softmax")], (8,), 4, 400),
    "mlp_784_512": (lambda: [L.Dense(512, activation="relu", input_shape=(784,)), L.Dense(512, activation="relu"), L.Dense(10, activation="softmax")],
                    (784,), 10, 100),
    "lstm_64_t50": (lambda: [L.LSTM(64, recurrent_activation="sigmoid", input_shape=(50, 32)), L.Dense(10, activation="softmax")], (50, 32), 10, 40),
    "lenet": (lambda: [L.Conv2D(32, 3, activation="relu", input_shape=(28, 28, 1)), L.MaxPooling2D(), L.Conv2D(64, 3, activation="relu"), L.MaxPooling2D(),
                       L.Flatten(), L.Dense(128, activation="relu"), L.Dense(10, activation="softmax")], (28, 28, 1), 10, 20),
}
BATCH = 64
rows = {}
for name, (layers, shape, classes, steps) in MODELS.items():
    model = Sequential(layers())
    model.compile(adam(), "categorical_crossentropy")
    r = np.random.RandomState(0)
    x, y = r.normal(size=(BATCH * steps,) + shape).astype("float32"), np.eye(classes, dtype="float32")[r.randint(classes, size=BATCH * steps)]
    model.fit(x, y, batch_size=BATCH, epochs=2, verbose=0)
    times = []
    for _ in range(5):
        start = time.perf_counter()
        model.fit(x, y, batch_size=BATCH, epochs=1, verbose=0)
        times.append((time.perf_counter() - start) / steps)
    rows[name] = sorted(times)[2]
print(json.dumps(rows))
