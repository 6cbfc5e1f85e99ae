"""What a newcomer waits for: compiling and linking hello, a C++ REPL's start, include and end."""

import os
import shutil
import statistics
import subprocess
import tempfile
import time

import programs

HEADERS = {
    "kassette": "kassette/backend.h",
    "torch": "torch/torch.h",
    "mlx": "mlx/mlx.h",
    "limits": "iostream",
}
REPLS = ("clang-repl-19", "clang-repl")


def seconds(command, repeats, **options):
    took = []
    for _ in range(repeats):
        start = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
        took.append(time.perf_counter() - start)
        if done.returncode:
            return {"error": (done.stderr or done.stdout).strip().splitlines()[-1][:200]}
    return {"ns": statistics.median(took) * 1e9, "n": repeats}


ROWS = ("compile.hello", "compile.hello.O2", "run.hello", "repl.hello")


def measure(build, folder, wanted):
    """{row: {program: cell}} for programs that `wanted` accepts; the limit is <iostream> alone."""
    repl = next((r for r in REPLS if shutil.which(r)), None)
    rows = {row: {} for row in ROWS}
    env = programs.environment(2)
    with tempfile.TemporaryDirectory() as scratch:
        for name, header in HEADERS.items():
            if not wanted(name):
                continue
            flags = {
                "kassette": lambda: programs.kassette_flags(build),
                "limits": lambda: (["-std=c++17"], []),
            }.get(name, lambda: programs.peer_flags(folder, name))()
            if flags is None:
                continue
            source = os.path.join(
                programs.HERE, "hello", ("iostream" if name == "limits" else name) + ".cpp"
            )
            exe, repeats = os.path.join(scratch, name), 1 if name == "torch" else 5
            here = dict(env, **programs.stubs(folder))
            rows["compile.hello"][name] = seconds(
                ["g++", *flags[0], source, "-o", exe, *flags[1]], repeats
            )
            rows["compile.hello.O2"][name] = seconds(
                ["g++", "-O2", *flags[0], source, "-o", exe, *flags[1]], repeats
            )
            if os.path.exists(exe):
                rows["run.hello"][name] = seconds([exe], repeats, env=here)
            if repl:
                rows["repl.hello"][name] = seconds(
                    [repl, *(f"-Xcc={f}" for f in flags[0])],
                    repeats,
                    input=f"#include <{header}>\n%quit\n",
                )
    return rows
