#!/usr/bin/env python3
"""docs/make/examples.py SOURCE BUILD [--accept] [PAGE...] - compiles and runs the C++ blocks of the pages, compares what they print.

A ```cpp block that holds a main() is a program. One that defines `extern "C"` functions is compiled only. All others below one
heading are one function body together, so that a block goes on where the one above it ended; the lines of `PRELUDE` stand before
them, and their own #include lines go to the top. What a block prints has to be what the ```text block behind it says; one
without prints nothing. Each heading runs in a process of its own. A page is compiled at once.

Every function that a public header declares needs a comment there and a heading with an example in docs/api/<header>.md.

--accept writes what was printed into the pages: read the difference before it is committed.
"""
import concurrent.futures
import difflib
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import headers
import markdown

PRELUDE = """#include <kassette/backend.h>
#include <cstdlib>
#include <iostream>
#include <vector>
namespace K = kassette::backend;
using kassette::Tensor;
using kassette::Tensors;
"""
# Stands in the output where a block begins.
MARK = "\x1e"


class Program:
    """Blocks that run together, and what each should print."""

    def __init__(self, heading, kind):
        self.heading, self.kind, self.blocks, self.expected = heading, kind, [], []


def programs(page):
    out = []
    for section in markdown.sections(page.read_text()):
        snippets = Program(section.title, "snippets")
        last = None
        for part in section.parts:
            if not isinstance(part, markdown.Block):
                last = last if not part.strip() else None
                continue
            if part.language == "cpp":
                text = part.text()
                if re.search(r"^int main\(", text, re.M):
                    last = Program(section.title, "main")
                elif re.search(r'^extern "C"', text, re.M):
                    last = Program(section.title, "library")
                else:
                    last = snippets
                if last not in out:
                    out.append(last)
                last.blocks.append(part)
                last.expected.append(None)
            elif part.language == "text" and last and last.expected[-1] is None:
                last.expected[-1] = part
            else:
                last = None
    return out


def source_of(name, group):
    """One source for all snippets of a page: main(n) runs the nth."""
    includes, functions = [], []
    for number, program in enumerate(group):
        functions.append(f"static void example_{number}() {{")
        for block in program.blocks:
            functions.append(f'std::cout << "{MARK}";')
            functions.append(f'#line {block.line} "{name}"')
            for line in block.lines:
                if line.startswith("#include"):
                    includes.append(line)
                    functions.append("")
                else:
                    functions.append(line)
        functions.append("}")
    cases = "\n".join(f"  case {n}: example_{n}(); break;" for n in range(len(group)))
    main = f"int main(int, char** arguments) {{\n  switch (std::atoi(arguments[1])) {{\n{cases}\n  }}\n}}\n"
    return "\n".join([*dict.fromkeys(includes)]) + "\n" + PRELUDE + "\n".join(functions) + "\n" + main


def changed(page, block, printed):
    """The page's lines with another expected output."""
    lines = page.read_text().splitlines()
    lines[block.line - 1:block.line - 1 + len(block.lines)] = printed.splitlines()
    page.write_text("\n".join(lines) + "\n")


class Checker:
    def __init__(self, source, build, work, accept):
        self.source, self.build, self.work, self.accept = source, build, work, accept
        self.compiler = os.environ.get("CXX", "g++").split()
        self.flags = ["-std=c++20", f"-I{build}/include"]
        self.link = [f"-L{build}/lib", "-lkassette", f"-Wl,-rpath,{build}/lib"]

    def compile(self, text, stem, link):
        path = self.work / (stem + ".cpp")
        path.write_text(text)
        out = self.work / stem
        done = subprocess.run([*self.compiler, *self.flags, *([] if link else ["-c", "-fPIC"]), str(path), "-o", str(out), *(self.link if link else [])],
                              capture_output=True, text=True)
        return (out, "") if done.returncode == 0 else (None, done.stderr)

    def run(self, program, arguments, where):
        place = self.work / "run"
        place.mkdir(exist_ok=True)
        environment = dict(os.environ, KERAS_HOME=str(self.work / "keras"), KERAS_BACKEND="")
        done = subprocess.run([str(program), *arguments], capture_output=True, text=True, cwd=place, env=environment, timeout=120)
        if done.returncode != 0:
            return None, f"{where}: exit code {done.returncode}\n{done.stdout.replace(MARK, '')}{done.stderr}"
        return done.stdout, ""

    def compare(self, page, program, printed, replacements):
        complaints = []
        for block, expected, text in zip(program.blocks, program.expected, printed):
            wanted = expected.text() if expected else ""
            if text.rstrip() == wanted.rstrip():
                continue
            if self.accept and expected:
                replacements.append((expected, text))
                continue
            difference = "\n".join(difflib.unified_diff(wanted.splitlines(), text.splitlines(), "the page", "printed", lineterm="", n=1))
            complaints.append(f"{page.relative_to(self.source)}:{block.line}: {program.heading}: prints something else\n{difference}")
        return complaints

    def check(self, page):
        """(how many blocks, complaints) of one page."""
        name, stem = str(page.relative_to(self.source)), str(page.relative_to(self.source)).replace("/", "_").removesuffix(".md")
        complaints, replacements, count = [], [], 0
        found = programs(page)
        snippets = [p for p in found if p.kind == "snippets"]
        count = sum(len(p.blocks) for p in found)
        if snippets:
            binary, errors = self.compile(source_of(name, snippets), stem, link=True)
            if not binary:
                return count, [errors]
            for number, program in enumerate(snippets):
                printed, failure = self.run(binary, [str(number)], f"{name}: {program.heading}")
                complaints += [failure] if printed is None else self.compare(page, program, printed.split(MARK)[1:], replacements)
        for number, program in enumerate(p for p in found if p.kind != "snippets"):
            text = f'#line {program.blocks[0].line} "{name}"\n' + program.blocks[0].text()
            binary, errors = self.compile(text, f"{stem}_{number}", link=program.kind == "main")
            if not binary:
                complaints.append(errors)
            elif program.kind == "main":
                printed, failure = self.run(binary, [], f"{name}: {program.heading}")
                complaints += [failure] if printed is None else self.compare(page, program, [printed], replacements)
        for block, text in sorted(replacements, key=lambda pair: -pair[0].line):
            changed(page, block, text)
        return count, complaints


def unexplained(source):
    """Functions without an example, and examples of what no header declares."""
    complaints = []
    for header in headers.read_headers(source):
        page = source / "docs/api" / (header.name + ".md")
        shown = [s for s in markdown.sections(page.read_text()) if s.level == 2] if page.exists() else []
        with_block = {s.title for s in shown if s.blocks("cpp") and s.blocks("text")}
        declared = [f.name for f in header.functions]
        for f in header.functions:
            if f.name not in with_block:
                complaints.append(f"docs/api/{page.name}: no example of K::{f.name} and what it prints")
            if not f.comment:
                complaints.append(f"nn_backend/{header.name}.h: K::{f.name} has no comment")
        complaints += [f"docs/api/{page.name}: nn_backend/{header.name}.h declares no {s.title}" for s in shown if s.title not in declared]
    return complaints


def main():
    accept = "--accept" in sys.argv
    source, build, *names = [a for a in sys.argv[1:] if a != "--accept"]
    source = pathlib.Path(source).resolve()
    pages = [pathlib.Path(n).resolve() for n in names] or [source / "README.md", *sorted(source.glob("docs/**/*.md"))]
    blocks, complaints = 0, [] if names else unexplained(source)
    with tempfile.TemporaryDirectory() as work, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        checker = Checker(source, pathlib.Path(build).resolve(), pathlib.Path(work), accept)
        for count, found in pool.map(checker.check, pages):
            blocks += count
            complaints += found
    for complaint in complaints:
        print(complaint)
    print(f"{blocks} blocks on {len(pages)} pages compiled and ran, {len(complaints)} complaints")
    sys.exit(1 if complaints or not blocks else 0)


main()
