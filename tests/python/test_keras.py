"""Keras itself on kassette, where its own tests do not look."""
import keras
import numpy as np
import pytest
from keras import backend as K
from keras import layers as L


def test_a_function_of_the_backend_makes_a_lambda_layer():
    model = keras.Sequential([L.Lambda(K.sqrt, input_shape=(3,)), L.Dense(2, activation=K.relu)])
    assert model.predict(np.ones((2, 3))).shape == (2, 2)


@pytest.mark.filterwarnings("error")
def test_a_lambda_layer_finds_its_output_shape():
    a, b = L.Input((4, 3)), L.Input((3,))
    total = L.Lambda(lambda x: K.sum(x, axis=1))(a)
    both = L.Lambda(lambda xs: K.concatenate([xs[0], xs[1]], axis=-1))([total, b])
    halves = L.Lambda(lambda x: [x[:, :2], x[:, 2:]])(both)
    assert total._keras_shape == (None, 3) and both._keras_shape == (None, 6)
    assert [h._keras_shape for h in halves] == [(None, 2), (None, 4)]
    model = keras.Model([a, b], L.Dense(5, use_bias=False, kernel_initializer="ones")(halves[1]))
    x, y = np.arange(24.0).reshape(2, 4, 3), np.arange(6.0).reshape(2, 3)
    want = np.concatenate([x.sum(1), y], -1)[:, 2:].sum(-1)
    np.testing.assert_allclose(model.predict([x, y]), np.tile(want[:, None], 5))
    given = L.Lambda(lambda x: x, output_shape=(4, 3))(a)
    assert given._keras_shape == (None, 4, 3)
