"""Settings: keras.json, the environment, Keras' own functions."""
import os
import subprocess
import sys

import pytest


def run_alone(program, tmp_path, settings=None, **variables):
    """What a process of its own prints, with that text in keras.json."""
    if settings:
        (tmp_path / "keras.json").write_text(settings)
    environment = {k: v for k, v in os.environ.items() if k != "KERAS_BACKEND"}
    p = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=dict(environment, KERAS_HOME=str(tmp_path), **variables))
    assert p.returncode == 0, p.stderr
    return p.stdout


SETTINGS = '{"floatx": "float64", "epsilon": 1e-5, "image_data_format": "channels_first", "backend": "kassette.keras"}'


def test_settings_of_keras_json_hold_without_keras(tmp_path):
    program = "import kassette.keras as K; print(K.floatx(), K.epsilon(), K.image_data_format(), K.variable([1.0]).dtype, K.cast_to_floatx(1).dtype)"
    assert run_alone(program, tmp_path, SETTINGS) == "float64 1e-05 channels_first float64 float64\n"


def test_settings_of_keras_json_and_of_keras_itself_hold(tmp_path):
    pytest.importorskip("keras")
    program = """
from keras import backend as K
import kassette._core
print(K.floatx(), K.epsilon(), K.image_data_format(), K.variable([1.0]).dtype, K.backend())
K.set_floatx("float32")
print(K.floatx(), K.zeros((1,)).dtype, kassette._core.floatx())
K.set_epsilon(0.25)
print(K.epsilon(), float(K.eval(K.categorical_crossentropy(K.constant([[1.0, 0.0]]), K.constant([[1.0, 0.0]])))[0]) > 0.2)
"""
    assert run_alone(program, tmp_path, SETTINGS) == ("float64 1e-05 channels_first float64 kassette.keras\nfloat32 float32 float32\n0.25 True\n")


def test_what_keras_changed_before_the_first_call_is_passed_on(tmp_path):
    pytest.importorskip("keras")
    program = """
import os
os.environ["KERAS_BACKEND"] = "kassette.keras"   # chosen in the process
import kassette.keras as K
K.set_floatx("float16")
import keras   # its settings are those of keras.json
keras.backend.set_floatx("float32")
print(K.floatx(), K.zeros((1,)).dtype)
keras.backend.clear_session()
model = keras.Sequential([keras.layers.Dense(2, input_shape=(3,))])
model.save("%s")
print(keras.models.load_model("%s").output_shape)
""" % ((tmp_path / "model.h5",) * 2)
    assert run_alone(program, tmp_path) == "float32 float32\n(None, 2)\n"


def test_settings_without_keras_can_be_changed(tmp_path):
    program = """
import kassette.keras as K
K.set_floatx("float64"); K.set_epsilon(1e-3); K.set_image_data_format("channels_first")
print(K.floatx(), K.epsilon(), K.image_data_format(), K.zeros((1,)).dtype)
"""
    assert run_alone(program, tmp_path) == "float64 0.001 channels_first float64\n"
