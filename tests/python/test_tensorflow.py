"""Keras on kassette beside Keras on TensorFlow 2.15: the same initial weights give the same losses and weights (models.py)."""
import os

import keras
import numpy as np
import pytest

import models

STORED = np.load(os.path.join(os.path.dirname(__file__), "tensorflow.npz"))


def stored(name, which):
    n = sum(k.startswith(f"{name}.{which}.") for k in STORED.files)
    return [STORED[f"{name}.{which}.{i}"] for i in range(n)]


@pytest.mark.parametrize("name", sorted(models.MODELS))
def test_losses_and_weights_after_24_steps(name):
    first, losses, last = models.train(keras, name, stored(name, "first"))
    np.testing.assert_allclose(losses, STORED[name + ".losses"], atol=1e-6, rtol=1e-6)
    for i, (got, want) in enumerate(zip(last, stored(name, "last"))):
        if name == "mlp" and i in (5, 11):
            # The moving variance: Keras 2.3 moves it towards n / (n - 1.001) of the batch's variance, tf.keras towards that itself.
            start = 0.99 ** models.STEPS
            got = start + (got - start) * (models.BATCH - 1.001) / models.BATCH
        np.testing.assert_allclose(got, want, atol=1e-5)
