"""Edits Keras' own tests where they ask for TensorFlow by name: edits.py FOLDER, the folder `tests` of Keras 2.3.1's source archive.

Each is (file, what is there, what comes in its place), with the reason; one that no longer fits is an error.
"""
import pathlib
import sys

EDITS = [
    # The learning phase that a test sets would last into the next: with TensorFlow it is cleared after each.
    ("conftest.py", "if K.backend() == 'tensorflow' or K.backend() == 'cntk':", "if True:"),
    # The backend that is compared with NumPy's.
    ("keras/backend/backend_test.py", "from keras.backend import tensorflow_backend as KTF", "from kassette import keras as KTF"),
    # Theano's backend, which is compared with TensorFlow's, or is the only one tried.
    ("keras/backend/backend_test.py", "for k in [KTH]:", "for k in [KTF]:"),
    ("keras/backend/backend_test.py", "for k in [KTH, KTF]]", "for k in [KTF]]"),
    ("keras/backend/backend_test.py", "zip(x_list, [KTH, KTF])", "zip(x_list, [KTF])"),
    ("keras/backend/backend_test.py", "test_backend = [KTH, KTF]", "test_backend = [KTF]"),
    ("keras/backend/backend_test.py", "[KTF, KTH],\n", "[KTF],\n"),
    # Theano's backend refuses other factors than 2; ours, as TensorFlow's, does not.
    ("keras/backend/backend_test.py", "        with pytest.raises(NotImplementedError):\n            self._helper_bilinear(data_format, 4, 4)",
     "        self._helper_bilinear(data_format, 4, 4)"),
    # Those skipped on other backends than TensorFlow although we have what they want: losses as objects, and CTC.
    ("keras/losses_test.py", "skipif_not_tf = pytest.mark.skipif(\n    K.backend() != 'tensorflow',", "skipif_not_tf = pytest.mark.skipif(\n    False,"),
    ("keras/backend/backend_test.py", "    @pytest.mark.skipif(K.backend() != 'tensorflow',\n                        reason='Beam search",
     "    @pytest.mark.skipif(False,\n                        reason='Beam search"),
    ("keras/backend/backend_test.py", "    @pytest.mark.skipif(K.backend() != 'tensorflow',\n                        reason='Test adapted",
     "    @pytest.mark.skipif(False,\n                        reason='Test adapted"),
    ("keras/backend/backend_test.py", "    @pytest.mark.skipif(K.backend() != 'tensorflow',\n                        reason='theano returns",
     "    @pytest.mark.skipif(False,\n                        reason='theano returns"),
    # NumPy 2 has no alltrue.
    ("keras/backend/backend_test.py", "np.alltrue(", "np.all("),
    # pytest 8 has no warns(None).
    ("keras/engine/test_training.py", "pytest.warns(None)", "__import__('warnings').catch_warnings(record=True, action='always')"),
    # Images lie as with TensorFlow.
    ("keras/engine/test_topology.py", "    if K.backend() == 'tensorflow' or K.backend() == 'cntk':", "    if K.backend() != 'theano':"),
    # TensorFlow's version is asked for, nothing else of it.
    ("keras/metrics_confusion_matrix_test.py", "import tensorflow as tf", "import types; tf = types.SimpleNamespace(__version__='2.0')"),
    ("keras/metrics_confusion_matrix_test.py", "if K.backend() != 'tensorflow':", "if K.backend() == 'theano':"),
    # Metrics as objects: any backend that defers updates has them.
    ("keras/metrics_test.py", "if K.backend() != 'tensorflow':", "if K.backend() == 'theano':"),
]


def main(folder):
    for name, old, new in EDITS:
        path = pathlib.Path(folder) / name
        text = path.read_text()
        if old not in text:
            if new in text:   # edited before
                continue
            sys.exit(f"edits.py: {name} has no line {old!r}")
        path.write_text(text.replace(old, new))


if __name__ == "__main__":
    main(*sys.argv[1:])
