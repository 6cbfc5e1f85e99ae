"""The functions of the backend beside TensorFlow 1.15's: cases.py."""
import json
import os

import numpy as np
import pytest

import cases
import kassette.keras as K

with open(os.path.join(os.path.dirname(__file__), "cases.json")) as stored:
    STORED = json.load(stored)
KNOWN = cases.names(K)


def compare(got, want):
    if isinstance(want, dict) and "elements" in want:
        assert (got["dtype"], got["shape"]) == (want["dtype"], want["shape"])
        tolerance = 1e-3 if want["dtype"] == "float16" else 2e-6
        np.testing.assert_allclose(got["elements"], want["elements"], rtol=tolerance, atol=tolerance)
    elif isinstance(want, dict):
        assert sorted(got) == sorted(want)
        for key in want:
            compare(got[key], want[key])
    elif isinstance(want, list):
        assert len(got) == len(want)
        for one, other in zip(got, want):
            compare(one, other)
    else:
        assert got == want


@pytest.mark.parametrize("expression", STORED)
def test_as_tensorflow(expression):
    compare(cases.plain(eval(expression, KNOWN), K), STORED[expression])
