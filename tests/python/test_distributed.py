"""kassette.distributed and Keras on many ranks: jobs of mpirun, whose ranks run ranks.py, and jobs that fail."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import kassette

HERE = pathlib.Path(__file__).parent
MPIRUN = shutil.which("mpirun")
SEVERAL = MPIRUN and (pathlib.Path(kassette.__file__).parent / "libkassette_mpi.so").exists()
several_ranks = pytest.mark.skipif(not SEVERAL, reason="there is no mpirun, or the wheel was built without MPI (third_party/install.sh mpi)")


def environment():
    # For Open MPI, which otherwise refuses root, and more ranks than there are cores.
    return dict(os.environ, KASSETTE_NUM_THREADS="1", KASSETTE_RANKS_TIMEOUT="60", OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_hwloc_base_binding_policy="none")


def command(ranks, *arguments):
    return ([MPIRUN, "-n", str(ranks)] if ranks else []) + [sys.executable, *map(str, arguments)]


def run(ranks, *arguments):
    done = subprocess.run(command(ranks, *arguments), env=environment(), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The weights of each model, and the history, as a program of one rank has them."""
    folder = tmp_path_factory.mktemp("alone")
    assert "1 ranks agree" in run(0, HERE / "ranks.py", folder)
    return np.load(folder / "trained.npz")


@pytest.mark.parametrize("ranks", [pytest.param(n, marks=several_ranks) for n in (1, 2, 3)])
def test_ranks_agree_with_one_another_and_with_one_rank(ranks, alone, tmp_path):
    assert f"{ranks} ranks agree" in run(ranks, HERE / "ranks.py", tmp_path)
    trained = np.load(tmp_path / "trained.npz")
    assert sorted(trained) == sorted(alone)
    for name in alone:
        np.testing.assert_allclose(trained[name], alone[name], rtol=0, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("ranks", [0, pytest.param(2, marks=several_ranks)])
def test_the_example_learns(ranks):
    said = run(ranks, HERE.parent.parent / "examples/digits_distributed.py")
    assert re.search(rf"{max(ranks, 1)} ranks?: accuracy 0.9[5-9]\d*; weights differ by 0 between ranks", said), said


FAILING = """
import sys, time
import numpy as np
from kassette import distributed as D
world = D.init()
D.all_reduce(np.ones(1000))
how = sys.argv[1]
if world.rank == 1:
    print("begins", time.time(), flush=True)
    if how == "raise": raise KeyError("no such column")
    if how == "exit": sys.exit(7)
    time.sleep(100)
if how == "interrupt" and world.rank == 0:
    import os, signal, threading
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
D.all_reduce(np.ones(3))
print("ends")
"""


@several_ranks
@pytest.mark.parametrize("how, said", [
    ("raise", "kassette: rank 1 of 3:\nTraceback (most recent call last):"), ("exit", ""),
    ("interrupt", "kassette: rank 0 was interrupted while it waited in all_reduce(sum) of float64 (3,)")])
def test_a_rank_that_fails_ends_all(how, said):
    for attempt in range(3):   # Open MPI's mpirun (4.1.4) itself crashes or hangs at times when ranks fail
        job = subprocess.Popen(command(3, "-c", FAILING, how), env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               start_new_session=True)
        try:
            out, err = job.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            os.killpg(job.pid, signal.SIGKILL)
            out, err = job.communicate()
        ended = time.time()
        began = float(re.search(r"begins ([\d.]+)", out)[1])
        if job.returncode > 0 and ended - began < 5 and said in err and "ends" not in out:
            break
        print(f"attempt {attempt}: status {job.returncode} after {ended - began:.1f} s\n{out}{err}")
    else:
        raise AssertionError("a rank failed, and the others did not end as they should")
    if how == "raise":
        assert "KeyError: 'no such column'" in err.partition("MPI_ABORT")[0]   # its message first; what mpirun says may get lost
