"""JupyterLab as users see it, by `kassette notebook`, in a headless Chromium: runs a notebook, then tries Tab, Shift-Tab, the stop button and
the input box. browser.py KASSETTE NOTEBOOKS FOLDER leaves pictures in FOLDER; .ci/nightly installs what it needs. The Python that runs it
has playwright, and KASSETTE_PYTHON ipykernel and JupyterLab."""
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

from playwright.sync_api import expect, sync_playwright

SECONDS = 180
CELL = ".jp-Notebook .jp-CodeCell"


def write_notebook(path, cells):
    path.write_text(json.dumps({
        "cells": [{"cell_type": "code", "metadata": {}, "source": source, "execution_count": None, "outputs": []} for source in cells],
        "metadata": {"kernelspec": {"name": "kassette", "display_name": "C++ (kassette)", "language": "c++"}}, "nbformat": 4, "nbformat_minor": 4}))


class Lab:
    """A server of JupyterLab in a folder."""

    def __init__(self, kassette, folder, log):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        self.address = f"http://127.0.0.1:{port}"
        self.process = subprocess.Popen([kassette, "notebook", "--no-browser", "--allow-root", f"--port={port}", "--ServerApp.token=t", "--ServerApp.ip=127.0.0.1",
                                         f"--ServerApp.root_dir={folder}", "--LabApp.news_url=None"], stdout=log, stderr=subprocess.STDOUT, cwd=folder)
        begin = time.monotonic()
        while True:
            try:
                urllib.request.urlopen(f"{self.address}/api?token=t", timeout=2)
                return
            except (urllib.error.URLError, OSError):
                if time.monotonic() - begin > SECONDS or self.process.poll() is not None:
                    raise
                time.sleep(0.3)

    def open(self, page, name):
        page.goto(f"{self.address}/lab/tree/{name}?token=t&reset")
        page.wait_for_selector(CELL)
        # On a busy machine the list of kernels may come after the notebook, and then JupyterLab asks.
        page.add_locator_handler(page.locator(".jp-Dialog").get_by_text("Select Kernel"), lambda: page.click(".jp-Dialog button:has-text('Select')"))
        page.click(".jp-Notebook", position={"x": 5, "y": 5})
        page.wait_for_function("() => document.querySelector('.jp-Notebook-ExecutionIndicator')?.dataset.status === 'idle'")


def run_all(page, shot):
    page.click(".lm-MenuBar-itemLabel:text-is('Run')")
    page.click("text=Run All Cells")
    # Until every cell has a number, and none a star. JupyterLab gives numbers to cells that are drawn: a picture makes a browser draw that nobody sees.
    begin = time.monotonic()
    while True:
        page.screenshot(path=shot)
        prompts = page.evaluate("[...document.querySelectorAll('.jp-CodeCell .jp-InputPrompt')].map(p => p.textContent)")
        if prompts and all(re.search(r"\d", p) for p in prompts):
            return
        if time.monotonic() - begin > SECONDS:
            raise AssertionError(f"Run All does not end: {prompts}")
        time.sleep(0.5)


def interact(page, folder):
    cells = page.locator(f"{CELL} .jp-InputArea-editor .cm-content")

    def type_in(number, text):
        cells.nth(number).click()
        page.keyboard.press("Control+a")
        page.keyboard.type(text)

    type_in(0, "K::softm")
    page.keyboard.press("Tab")
    expect(page.locator(".jp-Completer").or_(cells.nth(0).filter(has_text="K::softmax")).first).to_be_visible()
    page.screenshot(path=folder / "tab.png")
    page.keyboard.press("Escape")
    cells.nth(0).click()
    type_in(0, "K::softmax(")
    page.keyboard.press("Shift+Tab")
    expect(page.locator(".jp-Tooltip")).to_contain_text("Tensor softmax(")
    page.screenshot(path=folder / "shift_tab.png")
    page.keyboard.press("Escape")

    outputs = page.locator(f"{CELL} .jp-OutputArea-output")
    cells.nth(1).click()
    page.keyboard.press("Control+Enter")
    expect(outputs.filter(has_text="endless")).to_be_visible()
    begin = time.monotonic()
    page.click("[data-command='notebook:interrupt-kernel'], [title*='nterrupt']")
    expect(outputs.filter(has_text="interrupted")).to_be_visible()
    print(f"stopped after {time.monotonic() - begin:.2f} s")
    cells.nth(2).click()
    page.keyboard.press("Control+Enter")
    page.fill(".jp-Stdin-input", "Ada")
    page.keyboard.press("Enter")
    expect(outputs.filter(has_text='"Ada"')).to_be_visible()
    page.screenshot(path=folder / "input.png")


def main():
    kassette, notebooks, folder = (pathlib.Path(a).resolve() for a in sys.argv[1:])
    folder.mkdir(parents=True, exist_ok=True)
    work = folder / "work"
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(notebooks.parent, work, ignore=lambda where, names: [n for n in names if not re.search(r"\.(h|csv|ipynb)$|^(data|notebooks)$", n)])
    for name in (work / "notebooks").glob("*.ipynb"):   # as nobody has run them yet
        notebook = json.loads(name.read_text())
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                cell["outputs"], cell["execution_count"] = [], None
        name.write_text(json.dumps(notebook))
    write_notebook(work / "interact.ipynb", ["", '#include <iostream>\nstd::cout << "endless" << std::endl;\nwhile (true) {}', "std::string who;\nstd::cin >> who;\nwho"])
    os.environ["JUPYTER_CONFIG_DIR"] = os.environ["JUPYTER_DATA_DIR"] = os.environ["JUPYTER_RUNTIME_DIR"] = str(work / "jupyter")
    with open(folder / "server.log", "w") as log:
        lab = Lab(kassette, work, log)
        try:
            with sync_playwright() as p:
                browser = p.chromium.launch(executable_path=shutil.which("chromium"), headless=True, args=["--no-sandbox"])
                page = browser.new_page(viewport={"width": 1100, "height": 2400})
                page.set_default_timeout(SECONDS * 1000)
                expect.set_options(timeout=SECONDS * 1000)
                for name in "first_steps", "digits":
                    lab.open(page, f"notebooks/{name}.ipynb")
                    run_all(page, folder / f"{name}.png")
                page.set_viewport_size({"width": 1100, "height": 700})
                lab.open(page, "interact.ipynb")
                interact(page, folder)
                browser.close()
        finally:
            lab.process.terminate()
            lab.process.wait(20)


if __name__ == "__main__":
    main()
