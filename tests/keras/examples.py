"""Runs one of Keras' own examples on kassette: examples.py FOLDER NAME.

The file is what Keras 2.3.1 published, but for the edits below (how often it goes round, how much data it makes), and for what it would
download: data sets are random arrays of the same kind, texts are made up, and pretrained networks have random weights.
"""
import os
import runpy
import string
import sys
import types

import numpy as np

EDITS = {
    "addition_rnn": [("TRAINING_SIZE = 50000", "TRAINING_SIZE = 2000"), ("range(1, 200)", "range(1, 2)")],
    "lstm_stateful": [("epochs = 10", "epochs = 1"), ("input_len = 1000", "input_len = 200")],
    "variational_autoencoder": [("epochs = 50", "epochs = 1"), ("    n = 30", "    n = 3")],
    "mnist_mlp": [("epochs = 20", "epochs = 1")],
    "mnist_cnn": [("epochs = 12", "epochs = 1")],
    "mnist_siamese": [("epochs = 20", "epochs = 1")],
    "antirectifier": [("epochs = 40", "epochs = 1")],
    "imdb_lstm": [("epochs=15", "epochs=1")],
    "imdb_cnn": [("epochs = 2", "epochs = 1")],
    "reuters_mlp": [("epochs = 5", "epochs = 1")],
    "conv_lstm": [("n_samples=1200)\nseq", "n_samples=8)\nseq"), ("epochs=300", "epochs=1"), ("which = 1004", "which = 4")],
    "deep_dream": [("iterations = 20", "iterations = 1"), ("num_octave = 3", "num_octave = 2")],
    "neural_style_transfer": [("img_nrows = 400", "img_nrows = 48"), ("maxfun=20", "maxfun=2")],
    "lstm_text_generation": [("epochs=60", "epochs=1"), ("for i in range(400):", "for i in range(10):"),
                             ("for diversity in [0.2, 0.5, 1.0, 1.2]:", "for diversity in [0.5]:")],
    "image_ocr": [("words_per_epoch = 16000", "words_per_epoch = 64"), ("int(words_per_epoch * (val_split))", "32"),
                  ("train(run_name, 0, 20, 128)", "train(run_name, 0, 1, 128)"),
                  ("train(run_name, 20, 25, 512)", "pass")],
}
ARGUMENTS = {"deep_dream": ["picture.png", "dream"], "neural_style_transfer": ["picture.png", "picture.png", "style", "--iter", "1"]}
random = np.random.RandomState(0)


def digits():
    def some(n):
        return random.randint(256, size=(n, 28, 28), dtype="uint8"), np.arange(n) % 10
    return some(60000), some(10000)


def sequences(classes, words=1000):
    def load_data(num_words=None, **_):
        def some(n):
            x = np.empty(n, dtype=object)
            for i in range(n):
                x[i] = [1] + random.randint(1, min(words, num_words or words), size=random.randint(5, 60)).tolist()
            return x, np.arange(n) % classes
        return some(128), some(64)
    return load_data


def text_file(name, *_, **__):
    """What get_file would fetch: prose, or lists of words of one kind."""
    words = ["".join(random.choice(list(string.ascii_lowercase), size=random.randint(2, 5))) for _ in range(20000)]
    if name.endswith(".tgz"):
        for part in ("wordlist_mono_clean.txt", "wordlist_bi_clean.txt"):
            lines = words if "mono" in part else [a + " " + b for a, b in zip(words, words[1:])]
            with open(part, "w") as f:
                f.write("\n".join(lines))
        return os.path.abspath(name)
    with open("text.txt", "w") as f:
        f.write(" ".join(words[:600]))
    return "text.txt"


def cairo():
    """The few functions of cairocffi with which image_ocr paints words, over Pillow."""
    from PIL import Image, ImageDraw

    class Surface:
        def __init__(self, _, w, h):
            self.image = Image.new("L", (w, h), 255)

        def get_data(self):
            return np.repeat(np.asarray(self.image, "uint8")[:, :, None], 4, 2).tobytes()

    class Context:
        def __init__(self, surface):
            self.surface, self.at = surface, (0, 0)

        def text_extents(self, text):
            box = ImageDraw.Draw(self.surface.image).textbbox((0, 0), text)
            return (0, 0, box[2], box[3], box[2], 0)

        def move_to(self, x, y):
            self.at = (x, y)

        def show_text(self, text):
            ImageDraw.Draw(self.surface.image).text(self.at, text, fill=0)

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def __getattr__(self, _):   # colours and fonts
            return lambda *_: None

    return types.SimpleNamespace(ImageSurface=Surface, Context=Context, FORMAT_RGB24=0, FONT_SLANT_NORMAL=0, FONT_WEIGHT_BOLD=0, FONT_WEIGHT_NORMAL=0)


def without_downloads():
    import keras
    import keras.utils.data_utils
    from keras import applications, datasets, utils

    datasets.mnist.load_data = digits
    datasets.imdb.load_data, datasets.reuters.load_data = sequences(2), sequences(46)
    keras.utils.data_utils.get_file = keras.utils.get_file = text_file
    utils.plot_model = lambda *_, **__: None   # wants the program dot
    for module, name in (("inception_v3", "InceptionV3"), ("vgg19", "VGG19")):
        network = getattr(getattr(applications, module), name)
        setattr(getattr(applications, module), name, lambda *a, network=network, **k: network(*a, **dict(k, weights=None)))


def main(folder, name):
    os.environ["MPLBACKEND"] = "Agg"
    path = os.path.join(folder, name + ".py")
    with open(path) as f:
        program = f.read()
    for old, new in EDITS[name]:
        if old not in program:
            sys.exit(f"examples.py: {name} has no {old!r}")
        program = program.replace(old, new)
    if name == "image_ocr":
        sys.modules["cairocffi"] = cairo()
        sys.modules["editdistance"] = types.SimpleNamespace(eval=lambda a, b: abs(len(a) - len(b)))
    if name in ARGUMENTS:
        from PIL import Image
        Image.fromarray((random.rand(90, 90, 3) * 255).astype("uint8")).save("picture.png")
    np.random.seed(0)
    without_downloads()
    with open(name + "_edited.py", "w") as f:
        f.write(program)
    sys.argv = [name] + ARGUMENTS.get(name, [])
    runpy.run_path(name + "_edited.py", run_name="__main__")


if __name__ == "__main__":
    main(*sys.argv[1:])
