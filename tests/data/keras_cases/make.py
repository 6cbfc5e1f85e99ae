#!/usr/bin/env python3
"""tests/data/keras_cases/make.py - writes keras_cases.txt: what tf.keras.backend makes of given tensors, and its gradients.

    python3 tests/data/keras_cases/make.py > tests/data/keras_cases.txt      (needs tensorflow 2.15; any CPU build)

A number as argument is another seed: other cases, to try. Further numbers are the sizes of at_random.

A line is a case:   [~note] function [name=argument ...] tensor ... -> result [| gradient ...]
A tensor is dtype[shape]=elements; a size of ? is unknown. An argument is a number, [a list] or None. The result is a tensor, or
the class of the error, as ValueError!. After | stands for each float input its gradient, or - where there is no path; the
cotangent of element i is 1 + 0.5 (i mod 3). A line that starts with "static" has placeholders, and the shape that is known of
the result. ~note: K decides otherwise; tests/nn_backend/keras_cases_test.cpp says what.
Inputs are multiples of 1/8 or named edges, so that every dtype holds them exactly.
"""
import sys

from ask import seen, tf, wrong
from activations_and_losses import activations_and_losses
from at_random import at_random
from elementwise import elementwise
from keras_tests import keras_tests
from linalg import linalg
from loops import loops
from operators import operators
from reductions import reductions
from shaping import shaping
from static_shapes import static_shapes

print("# Written by keras_cases/make.py, which says how to read it, with TensorFlow %s." % tf.__version__)
for family in (elementwise, reductions, linalg, shaping, activations_and_losses, at_random, operators, keras_tests, static_shapes, loops):
    before = len(seen)
    family()
    print("%s: %d cases" % (family.__name__, len(seen) - before), file=sys.stderr)
if wrong:
    sys.exit("\n".join(wrong))
