"""kassette.profile and kassette.detect_nan: what is recorded, and the lines of Python."""
import inspect
import json

import numpy as np
import pytest

import kassette
import kassette.keras as K


def here():
    return f"{__file__}:{inspect.currentframe().f_back.f_lineno}"


def events(file):
    return [e for e in json.load(open(file))["traceEvents"] if e["ph"] == "X"]


def test_a_profile_knows_the_line_that_recorded_an_op(tmp_path):
    file = str(tmp_path / "trace.json")
    x = K.placeholder((None, 3))
    y, line = K.exp(x), here()
    f = K.function([x], [K.sum(y)])
    with kassette.profile(file) as p:
        f([np.ones((2, 3))])
    found = [e for e in events(file) if e["name"].startswith("exp")]
    assert len(found) == 1 and found[0]["args"]["line"] == line
    assert "(2, 3) float32" in found[0]["args"]["shapes"]
    assert any(e["name"] == "function" for e in events(file))
    assert f"\n{line} " in str(p) or line[-30:] in str(p)
    p.save(str(tmp_path / "again.json"))
    assert len(events(tmp_path / "again.json")) == len(events(file))


def test_a_script_in_a_folder_called_kassette_is_the_users(tmp_path):
    script = str(tmp_path / "kassette" / "script.py")
    x = K.placeholder((2,))
    names = {"K": K, "x": x}
    exec(compile("\ny = K.log(x)", script, "exec"), names)
    with kassette.detect_nan():
        with pytest.raises(RuntimeError) as e:
            K.function([x], [names["y"]])([np.array([1.0, 0.0])])
    assert str(e.value).endswith(f"called at {script}:2")


def test_a_nan_is_found_at_the_line_that_recorded_it():
    x = K.placeholder((2,))
    y, line = K.log(x), here()
    f = K.function([x], [y * 2.0])
    assert np.isinf(f([np.array([1.0, 0.0])])[0][1])
    with kassette.detect_nan():
        with pytest.raises(RuntimeError) as e:
            f([np.array([1.0, 0.0])])
        assert str(e.value).startswith("log: gave 1 -inf in its result (2,) float32") and line in str(e.value)
        f([np.array([1.0, 1.0])])
    with kassette.detect_nan(infinities=False):
        f([np.array([1.0, 0.0])])


def test_a_profile_that_cannot_be_written_raises(tmp_path):
    with pytest.raises(RuntimeError):
        with kassette.profile(str(tmp_path / "no" / "trace.json")):
            pass
    with pytest.raises(RuntimeError):
        kassette.profile().save(str(tmp_path / "trace.json"))
