#!/usr/bin/env python3
"""docs/make/examples.py SOURCE BUILD [--accept] [PAGE...] - compiles and runs the C++ blocks of the pages, compares what they print.

A ```cpp block that holds a main() is a program. One that defines `extern "C"` functions is compiled only. All others below one
heading are one function body together, so that a block goes on where the one above it ended; the lines of `PRELUDE` stand before
them, on the page of a header in docs/api also that header, and their own #include lines go to the top. What a block prints has to be what the ```text block behind it says; one
without prints nothing. Each heading runs in a process of its own. A page is compiled at once.

Every name that a public header declares needs a comment there and a heading with an example in docs/api, on the page of its header; names that
belong together share a heading, `## load_npy, save_npy`. The public members of a class are shown in the examples below the heading
of the class or below headings of level 3 there.

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
#include <kassette/nn.h>
#include <kassette/numpy.h>
#include <cstdlib>
#include <iostream>
#include <vector>
namespace K = kassette::backend;
namespace nn = kassette::nn;
namespace np = kassette::numpy;
using kassette::Tensor;
using kassette::Tensors;
"""
# Pages that need another library's headers, which a program brings itself.
OPTIONAL = {"docs/api/xtensor.md": "xtensor/xtensor_config.hpp"}
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


def source_of(name, group, includes):
    """One source for all snippets of a page: main(n) runs the nth."""
    functions = []
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
        self.flags = ["-std=c++20", f"-I{source}/include"]
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
        # The pages show what a terminal prints that knows Unicode.
        environment = dict(os.environ, KERAS_HOME=str(self.work / "keras"), KERAS_BACKEND="", LC_ALL="C.UTF-8", TERM="xterm")
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

    def header_of(self, page):
        """The header that a page of docs/api is about, which the reference names at its top."""
        api = self.source / "docs/api"
        header = f"kassette/{page.relative_to(api).with_suffix('.h').as_posix()}" if api in page.parents else ""
        return [f"#include <{header}>"] if header and (self.source / "include" / header).exists() else []

    def check(self, page):
        """(how many blocks, complaints) of one page."""
        name, stem = str(page.relative_to(self.source)), str(page.relative_to(self.source)).replace("/", "_").removesuffix(".md")
        complaints, replacements, count = [], [], 0
        if name in OPTIONAL and subprocess.run([*self.compiler, "-E", "-x", "c++", "-", "-include", OPTIONAL[name]], input="", capture_output=True, text=True).returncode:
            print(f"{name}: not compiled, there is no <{OPTIONAL[name]}>")
            return count, complaints
        found = programs(page)
        snippets = [p for p in found if p.kind == "snippets"]
        count = sum(len(p.blocks) for p in found)
        if snippets:
            binary, errors = self.compile(source_of(name, snippets, self.header_of(page)), stem, link=True)
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


# Declared, but nothing that a program can use: the library's way into its classes, and what only another program calls.
NO_ENTRY = {
    "Access": "declared only", "DeviceStream": "declared only", "ExternalBackendAccess": "declared only", "CompiledFunction": "declared only", "RankGroup": "declared only", "TensorImpl": "declared only",
    "Arithmetic": "the base class with the operators of Tensor and Operand, which their entries show",
    "KASSETTE_API": "marks what the library exports",
    "KASSETTE_UNAVAILABLE": "marks what does not compile",
    "KASSETTE_DELETED": "marks what does not compile",
    "MatcherBase": "the base class of IsClose and MatchesGolden in the Catch2 that is there",
    "printValue": "cling looks for it by name; the test repl_cling calls it",
}
# Have an entry, but no example that runs here, or are no members for users.
NO_EXAMPLE = {
    "IsClose": "needs Catch2", "MatchesGolden": "needs Catch2",
    "return_to_scopes": "follows a jump out of a signal handler",
    "Scalar::Kind": "nothing public gives or takes it", "Index::Kind": "nothing public gives or takes it",
    "Call::native": "the old name of built_in", "Picture::Kind": "nothing public gives or takes it", "Dim::kNoneDim": "how a Dim holds None",
}


def members_of(entry, path=""):
    """The public members of a class, and theirs, that an example has to show. A member that ends in _ is the library's own."""
    for m in entry.members:
        name = f"{path or entry.name}::{m.name}"
        if name in NO_EXAMPLE or m.of_type == "Named" or m.name.endswith("_") or re.match(r"operator[ (\[]", m.name):
            continue
        yield m
        yield from members_of(m, name)


def every_member(entry):
    for m in entry.members:
        yield m
        yield from every_member(m)


def exported(build):
    """The functions that the library exports, without arguments: what public headers declare, as another program sees it."""
    listed = subprocess.run(["nm", "-DC", "--defined-only", str(build / "lib/libkassette.so")], capture_output=True, text=True, check=True).stdout
    for symbol in re.findall(r"(?m)^\S+ T (kassette::.*)$", listed):
        head = re.sub(r"<[^<>]*>|\[abi:\w+\]", "", symbol).split("(")[0]
        if "detail::" not in head and "operator" not in head and "~" not in head:
            yield head


def unexplained(source, build):
    """Public names without a comment, an entry or an example, and entries for what no header declares."""
    complaints, found = [], headers.read_headers(source)
    read = {h.path.resolve() for h in found} | {source / "include/kassette/backend.h", source / "include/kassette/nn.h", source / "include/kassette/prompt.h", source / "include/kassette/comforts.h", source / "include/kassette/backend/refusals.h", source / "include/kassette/numpy/refusals.h", source / "include/kassette/none.h", source / "include/kassette/engine.h"}   # these declare nothing
    for path in sorted((source / "include").rglob("*.h")):
        if path.resolve() not in read:
            complaints.append(f"{path}: installed, but docs/make/headers.py does not read it")
    defined = {e.name for h in found for e in h.entries if not e.forward or e.comment} | NO_ENTRY.keys()
    for header in found:
        where, page = f"{header.folder}/{header.path.name}", source / "docs/api" / header.page
        sections = markdown.sections(page.read_text()) if page.exists() else []
        shown = {name: entry for entry in markdown.entries(sections) for name in entry.names}
        complaints += [f"{where}: nothing defines {n}" for n in [*(e.name for e in header.entries if e.forward), *header.specialised] if n not in defined]
        declared = [e for e in header.entries if e.name not in NO_ENTRY and not e.name.startswith("operator") and (not e.forward or e.comment)]
        for e in declared:
            entry = shown.get(e.name)
            if not e.comment:
                complaints.append(f"{where}: {e.name} has no comment")
            if not entry:
                complaints.append(f"docs/api/{header.page}: no entry of {e.name}")
            elif e.name not in NO_EXAMPLE:
                code = "\n".join(b.text() for b in entry.blocks("cpp"))
                # Options and results are shown by a member of theirs: nobody writes the names of these structs.
                plain = e.kind == "class" and e.code.lstrip().startswith("struct ") and e.members and all(m.kind == "variable" for m in e.members)
                if plain and any(re.search(rf"\b{m.name}\b", code) for m in e.members):
                    continue
                if not entry.blocks("text") or not re.search(rf"\b{e.name}\b", code):
                    complaints.append(f"docs/api/{header.page}: no example of {e.name} and what it prints")
                code = "\n".join(b.text() for s in sections for b in s.blocks("cpp"))
                for m in members_of(e):
                    sign = m.name.removeprefix("operator")
                    if not (sign in code if sign != m.name else re.search(rf"\b{m.name}\b", code)):
                        complaints.append(f"docs/api/{header.page}: no example of {e.name}::{m.name}")
        names = {e.name for e in declared}
        complaints += [f"docs/api/{header.page}: {where} declares no {name}" for name in shown if name not in names]
    known = set(NO_ENTRY).union(*(h.hidden for h in found), (e.name for h in found for top in h.entries for e in [top, *every_member(top)]))
    complaints += [f"libkassette.so exports {s}, which docs/make/headers.py found in no public header" for s in exported(build) if s.split("::")[-1] not in known]
    pages, there = {h.page for h in found}, (p.relative_to(source / "docs/api").as_posix() for p in (source / "docs/api").rglob("*.md"))
    complaints += [f"docs/api/{page}: there is no public header {page.removesuffix('.md')}.h" for page in sorted(there) if page not in pages]
    return complaints


def main():
    accept = "--accept" in sys.argv
    source, build, *names = [a for a in sys.argv[1:] if a != "--accept"]
    source = pathlib.Path(source).resolve()
    pages = [pathlib.Path(n).resolve() for n in names] or [source / "README.md", *sorted(source.glob("docs/**/*.md"))]
    blocks, complaints = 0, [] if names else unexplained(source, pathlib.Path(build).resolve())
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
