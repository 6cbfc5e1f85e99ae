"""The kernel of notebooks that the wheel brings where the prompt was built: its session starts, and a cell gives a value."""
import pathlib

import pytest


def test_the_session_of_the_wheel_runs_a_cell():
    session = pytest.importorskip("kassette_kernel.session")
    package = pathlib.Path(session.__file__).parents[1] / "kassette"
    if not (package / "repl").exists():
        pytest.skip("this wheel has no prompt")
    shown, printed = [], []
    cells = session.Session([str(package / "repl"), "--include", str(package / "include"), "--serve"])

    def on_event(kind, fields):
        shown.append((kind, dict(fields)["text/plain"]))
        cells.send("ack")

    done = dict(cells.ask("run", lambda name, data: printed.append(data), on_event,
                          code='std::cout << "sorted" << std::endl;\nnp::sort({3, 1, 2})', file="In[1]"))
    assert done["status"] == b"ok"
    assert shown == [("value", b"[1. 2. 3.] (3,) float32 cpu")]
    assert b"".join(printed) == b"sorted\n"
    assert cells.end() == 0
