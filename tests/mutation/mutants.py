#!/usr/bin/python3
# tests/mutation/mutants.py - plants faults in the library's code and says which of them no test catches.
#
#   mutants.py draw  --build build --out FOLDER [--count 300] [--seed 1] [--only PATTERN]
#   mutants.py build --out FOLDER      a copy of the tree that holds all mutants, switched by KASSETTE_MUTANT
#   mutants.py record --out FOLDER     which tests reach which mutants
#   mutants.py run   --out FOLDER [--jobs 2] [--ids 3,17] [--budget 10]
#   mutants.py report --out FOLDER [--judged tests/mutation/judged.tsv]
#   mutants.py plant --out FOLDER      the faults of planted.tsv for mutants; then build, then
#   mutants.py hunt  --out FOLDER      which of them random programs find
#
# docs/architecture/testing.md says how it is used. Takes Debian's python3-clang-14, and a configured build folder.
import argparse
import collections
import concurrent.futures
import ctypes
import json
import os
import random
import re
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ["include", "core", "devices", "ops", "autograd", "nn_backend"]

RELATIONS = {"<": ["<=", ">="], "<=": ["<", ">"], ">": [">=", "<="], ">=": [">", "<"], "==": ["!="], "!=": ["=="]}
ARITHMETIC = {"+": ["-"], "-": ["+"], "*": ["/"], "/": ["*"], "%": ["*"], "<<": [">>"], ">>": ["<<"],
              "&": ["|"], "|": ["&"], "^": ["&"]}
COMPOUND = {"+=": ["-="], "-=": ["+="], "*=": ["/="], "/=": ["*="], "|=": ["&="], "&=": ["|="], "<<=": [">>="],
            ">>=": ["<<="], "%=": ["/="], "^=": ["|="]}
NAMES = {"min": "max", "max": "min", "floor": "ceil", "ceil": "floor", "any_of": "all_of", "all_of": "any_of",
         "lower_bound": "upper_bound", "upper_bound": "lower_bound", "front": "back", "back": "front",
         "maximum": "minimum", "minimum": "maximum", "greater_equal": "greater", "less_equal": "less", "begin": "end",
         "sin": "cos", "cos": "sin", "fmin": "fmax", "fmax": "fmin", "ones_like": "zeros_like", "zeros_like": "ones_like"}
# Taking these away changes speed or what is logged, by intent nothing that a program computes.
NO_MUTANT = re.compile(r"\b(reserve|shrink_to_fit|log_\w+|KASSETTE_LOG\w*|logger|prefetch|__builtin_\w+|static_assert|assert)\b")


def source_files():
    listed = subprocess.run(["git", "ls-files", *FOLDERS], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return sorted(f for f in listed.split() if re.search(r"\.(h|cpp|cu|cuh)$", f))


def code_lines(path):
    return sum(1 for line in open(ROOT / path) if line.strip() and not line.strip().startswith("//"))


# ---- Sites -----------------------------------------------------------------------------------------------------------


class Finder:
    """Walks the syntax tree of a translation unit and notes what can be changed in which way."""

    def __init__(self, wanted):
        from clang import cindex
        self.cindex = cindex
        self.kind = cindex.CursorKind
        self.index = cindex.Index.create()
        cindex.conf.lib.clang_getFileLocation.restype = None
        self.wanted = set(wanted)
        self.seen = set()
        self.sites = {}
        self.text = {}

    def parse(self, entry):
        arguments = shlex.split(entry["command"])[1:]
        kept, skip = [], False
        for a in arguments:
            if skip or a in ("-o", "-c", "-Werror"):
                skip = a == "-o"
                continue
            if a != entry["file"]:
                kept.append(a)
        while kept and not kept[0].startswith("-"):  # what stood behind a launcher
            kept.pop(0)
        unit = self.index.parse(entry["file"], args=[*kept, "-w", "-ferror-limit=0"])
        errors = [d for d in unit.diagnostics if d.severity >= 3]
        if errors:
            print(f"{entry['file']}: {len(errors)} errors, the first: {errors[0]}", file=sys.stderr)
        found = set()
        for cursor in unit.cursor.get_children():
            file = cursor.location.file
            if not file:
                continue
            path = self.relative(file.name)
            if path in self.wanted and path not in self.seen:
                found.add(path)
                self.walk(cursor, path, None, [])
        self.seen |= found

    @staticmethod
    def relative(name):
        real = os.path.realpath(name)
        return os.path.relpath(real, ROOT) if real.startswith(str(ROOT) + "/") else real

    def place(self, location):
        """File and offset of what is written; of a macro's argument, where the argument stands."""
        c = ctypes
        file, line, column, offset = c.c_void_p(), c.c_uint(), c.c_uint(), c.c_uint()
        self.cindex.conf.lib.clang_getFileLocation(location, c.byref(file), c.byref(line), c.byref(column), c.byref(offset))
        return offset.value

    def span(self, cursor):
        extent = cursor.extent
        return self.place(extent.start), self.place(extent.end)

    def source(self, path):
        if path not in self.text:
            self.text[path] = (ROOT / path).read_bytes()
        return self.text[path]

    def note(self, path, begin, end, kind, shown, new):
        """`new` is the expression or statement that stands in for what was at begin..end, with MUTANT for the switch."""
        source = self.source(path)
        old = source[begin:end].decode()
        if not old or NO_MUTANT.search(old) or re.match(r"[A-Z][A-Z_]+\(", old):  # a macro: its body is not looked at
            return
        line_begin = source.rfind(b"\n", 0, begin) + 1
        line = source[line_begin:source.find(b"\n", begin)].decode()
        if re.search(r"\b(constexpr|static_assert|case|template|enum|using|alignas)\b|^\s*#", line) or NO_MUTANT.search(line):
            return
        number = source.count(b"\n", 0, begin) + 1
        self.sites[(path, begin, end, kind, shown)] = dict(
            file=path, line=number, begin=begin, end=end, kind=kind, shown=shown, new=new.replace("\n", " "))

    def walk(self, cursor, path, parent, above):
        K = self.kind
        kind = cursor.kind
        if kind == K.STATIC_ASSERT or kind == K.ENUM_DECL:
            return
        children = list(cursor.get_children())
        try:
            self.look(cursor, kind, children, path, parent, above)
        except (UnicodeDecodeError, ValueError):
            pass
        for i, child in enumerate(children):
            if kind == K.CASE_STMT and i == 0:
                continue
            self.walk(child, path, (cursor, i, len(children)), above)

    def look(self, cursor, kind, children, path, parent, above):
        K = self.kind
        source = self.source(path)
        begin, end = self.span(cursor)
        if begin >= end:
            return
        text = source[begin:end].decode()
        in_step = parent and parent[0].kind == K.FOR_STMT and parent[1] == parent[2] - 2

        overloaded = kind == K.CALL_EXPR and re.fullmatch(r"operator(\W+)", cursor.spelling or "")
        if kind in (K.BINARY_OPERATOR, K.COMPOUND_ASSIGNMENT_OPERATOR) and len(children) == 2 or overloaded and len(children) == 3:
            left, right = self.span(children[0]), self.span(children[-1])
            op = source[left[1]:right[0]].decode().strip()
            if left[0] != begin or right[1] != end or left[1] > right[0]:
                return
            l, r = source[left[0]:left[1]].decode(), source[right[0]:right[1]].decode()
            if op in RELATIONS or op in ARITHMETIC:
                if overloaded and op in ("<<", ">>") or '"' in l + r and op == "+":
                    return
                for other in RELATIONS.get(op, []) + ARITHMETIC.get(op, []):
                    self.note(path, begin, end, "operator", f"{op} -> {other}", f"(MUTANT ? ({l}) {other} ({r}) : ({text}))")
            elif op in ("&&", "||"):
                other = "||" if op == "&&" else "&&"
                self.note(path, begin, end, "logic", f"{op} -> {other}", f"(MUTANT ? ({l}) {other} ({r}) : ({text}))")
                self.note(path, begin, end, "logic", f"{op}: the left side only", f"(MUTANT ? bool({l}) : ({text}))")
                self.note(path, begin, end, "logic", f"{op}: the right side only", f"(MUTANT ? bool({r}) : ({text}))")
            elif op in COMPOUND and not in_step:
                for other in COMPOUND[op]:
                    self.note(path, begin, end, "assignment", f"{op} -> {other}", f"(MUTANT ? ({l} {other} {r}) : ({text}))")
        elif kind == K.UNARY_OPERATOR and children:
            inner = self.span(children[0])
            before, after = source[begin:inner[0]].decode().strip(), source[inner[1]:end].decode().strip()
            operand = source[inner[0]:inner[1]].decode()
            if before == "!":
                self.note(path, begin, end, "not", "! dropped", f"(MUTANT ? bool({operand}) : ({text}))")
            elif before == "-" and not re.fullmatch(r"[\d.]+", operand):
                self.note(path, begin, end, "sign", "- dropped", f"(MUTANT ? +({operand}) : ({text}))")
            elif (before or after) in ("++", "--") and not in_step:
                other = "--" if (before or after) == "++" else "++"
                new = other + operand if before else operand + other
                self.note(path, begin, end, "step", f"{before or after} -> {other}", f"(MUTANT ? {new} : {text})")
        elif kind == K.INTEGER_LITERAL and re.fullmatch(r"\d+", text):
            for n in (int(text) + 1, int(text) - 1):
                self.note(path, begin, end, "number", f"{text} -> {n}", f"(MUTANT ? {n} : {text})")
        elif kind == K.FLOATING_LITERAL and re.fullmatch(r"[\d.]+f?", text):
            other = str(float(text.rstrip("f")) + 1) + ("f" if text.endswith("f") else "")
            self.note(path, begin, end, "number", f"{text} -> {other}", f"(MUTANT ? {other} : {text})")
        elif kind == K.CXX_BOOL_LITERAL_EXPR and text in ("true", "false"):
            other = "false" if text == "true" else "true"
            self.note(path, begin, end, "number", f"{text} -> {other}", f"(MUTANT ? {other} : {text})")
        elif kind in (K.BREAK_STMT, K.CONTINUE_STMT):
            if not (parent and parent[0].kind in (K.CASE_STMT, K.DEFAULT_STMT)):
                self.note(path, begin, end, "statement", f"{text} dropped", f"if (!MUTANT) {text}")

        if kind in (K.IF_STMT, K.CONDITIONAL_OPERATOR, K.WHILE_STMT) and len(children) >= 2:
            a, b = self.span(children[0])
            condition = source[a:b].decode()
            head = source[begin:a].decode()
            if a < b and "constexpr" not in head and ";" not in head and children[0].kind not in (K.DECL_STMT, K.VAR_DECL):
                forced = ["false"] if kind == K.WHILE_STMT else ["true", "false"]
                for value in forced:
                    self.note(path, a, b, "condition", f"condition {value}", f"(MUTANT ? {value} : bool({condition}))")
        if parent and parent[0].kind in (K.COMPOUND_STMT, K.IF_STMT) and (parent[0].kind == K.COMPOUND_STMT or parent[1] > 0):
            assigns = kind == K.BINARY_OPERATOR and len(children) == 2 and source[self.span(children[0])[1]:self.span(children[1])[0]].decode().strip() == "="
            if (kind in (K.CALL_EXPR, K.COMPOUND_ASSIGNMENT_OPERATOR) or assigns) and not re.match(r"[A-Z_]+\(", text) and text[-1] != ";":
                self.note(path, begin, end, "statement", "statement dropped", f"(MUTANT ? void() : void({text}))")
        if kind == K.RETURN_STMT and children and cursor.kind:
            a, b = self.span(children[0])
            if children[0].type.kind == self.cindex.TypeKind.BOOL and a < b:
                self.note(path, a, b, "return", "return negated", f"(MUTANT ? !({source[a:b].decode()}) : ({source[a:b].decode()}))")
        if kind == K.CALL_EXPR and not overloaded:
            self.calls(cursor, children, path, begin, end, text, source)

    def calls(self, cursor, children, path, begin, end, text, source):
        match = re.match(r"((?:[\w:]|->|\.)*?)\b(\w+)\s*(<[\w:]+>)?\(", text)
        if match and match[2] in NAMES:
            other = NAMES[match[2]]
            new = match[1] + other + text[match.end(2):]
            self.note(path, begin, end, "name", f"{match[2]} -> {other}", f"(MUTANT ? {new} : {text})")
        arguments = list(cursor.get_arguments())
        for a, b in zip(arguments, arguments[1:]):
            (a0, a1), (b0, b1) = self.span(a), self.span(b)
            first, second = source[a0:a1].decode(), source[b0:b1].decode()
            same = a.type.get_canonical().spelling.replace("const ", "") == b.type.get_canonical().spelling.replace("const ", "")
            if same and begin < a0 < a1 <= b0 < b1 < end and first != second and "<dependent" not in a.type.spelling:
                new = source[begin:a0].decode() + second + source[a1:b0].decode() + first + source[b1:end].decode()
                self.note(path, begin, end, "arguments", f"{first}, {second} -> {second}, {first}", f"(MUTANT ? {new} : {text})")


def draw(options):
    """A list of mutants to plant."""
    options.out = str(Path(options.out).resolve())
    wanted = [f for f in source_files() if not options.only or re.search(options.only, f)]
    entries, units = json.load(open(Path(options.build) / "compile_commands.json")), {}
    for entry in entries:
        path = os.path.relpath(os.path.realpath(entry["file"]), ROOT)
        if path.split("/")[0] in FOLDERS:
            units.setdefault(path, entry)
    finder = Finder(wanted)
    # Sources come first; other files of theirs are read until every header was seen.
    for path, entry in sorted(units.items(), key=lambda u: (u[0] not in wanted, u[0])):
        if path not in wanted and finder.seen.issuperset(wanted):
            break
        os.chdir(entry["directory"])
        finder.parse(entry)
    missed = sorted(set(wanted) - finder.seen)
    if missed:
        print("read by no compilation:", *missed, file=sys.stderr)
    sites = sorted(finder.sites.values(), key=lambda s: (s["file"], s["begin"], s["end"], s["kind"], s["shown"]))
    Path(options.out).mkdir(parents=True, exist_ok=True)
    json.dump(sites, open(Path(options.out) / "sites.json", "w"))
    chosen = choose(sites, wanted, options.count, random.Random(options.seed))
    out = Path(options.out)
    for i, site in enumerate(chosen):
        site["id"] = i + 1
    json.dump(dict(count=options.count, mutants=chosen), open(out / "mutants.json", "w"), indent=1)
    counts = collections.Counter(s["file"].split("/")[0] for s in chosen)
    print(f"{len(sites)} places, {len(chosen)} drawn:", *(f"{k} {counts[k]}" for k in FOLDERS))


def choose(sites, wanted, count, rng):
    """Folders by their lines of code; within a folder first a line, then one of its changes. No two overlap."""
    lines = {f: sum(code_lines(p) for p in wanted if p.split("/")[0] == f) for f in FOLDERS}
    by_folder = collections.defaultdict(lambda: collections.defaultdict(list))
    for site in sites:
        by_folder[site["file"].split("/")[0]][(site["file"], site["line"])].append(site)
    # Some will not compile; they are drawn as spares.
    quota = {f: round(count * 1.15 * n / max(1, sum(lines.values()))) for f, n in lines.items()}
    chosen = []
    for folder in FOLDERS:
        places = sorted(by_folder[folder].items())
        rng.shuffle(places)
        taken = 0
        for _, candidates in places:
            if taken == quota[folder]:
                break
            # First the sort of change, so that lines full of literals do not make numbers of all mutants.
            kinds = sorted({c["kind"] for c in candidates})
            kind = rng.choices(kinds, [1 if k == "number" else 3 for k in kinds])[0]
            site = rng.choice([c for c in candidates if c["kind"] == kind])
            if any(s["file"] == site["file"] and s["begin"] < site["end"] and site["begin"] < s["end"] for s in chosen):
                continue
            chosen.append(site)
            taken += 1
    return chosen


def plant(options):
    """The mutants are those of a list that somebody wrote."""
    out = Path(options.out).resolve()
    out.mkdir(parents=True, exist_ok=True)
    mutants = []
    for line in open(ROOT / "tests/mutation/planted.tsv"):
        if not line.strip() or line.startswith("#"):
            continue
        file, text, old, new, shown = line.rstrip("\n").split("\t")
        source = (ROOT / file).read_bytes().decode()
        places = [m.start(1) for m in re.finditer(r"(?m)^[ \t]*(" + re.escape(text) + r")$", source)]
        if len(places) != 1 or old not in text:
            sys.exit(f"mutants.py plant: {file}: {len(places)} lines are: {text}")
        begin = len(source[:places[0] + text.index(old)].encode())
        statement = old.endswith(";")
        mutants.append(dict(file=file, line=source.count("\n", 0, places[0]) + 1, begin=begin, end=begin + len(old.encode()), kind="planted", shown=shown,
                            new=f"if (MUTANT) {{ {new} }} else {{ {old} }}" if statement else f"(MUTANT ? ({new}) : ({old}))", id=len(mutants) + 1))
    json.dump(dict(count=len(mutants), mutants=mutants, planted=True), open(out / "mutants.json", "w"), indent=1)
    print(f"{len(mutants)} faults")


# ---- Building --------------------------------------------------------------------------------------------------------


# The flags of the tests stay as they are, so that ccache knows those which include no mutant.
# The instructions of a chain end with jumps to the next one, which -O1 alone does not make.
QUICK_AND_SILENT = """
foreach(folder core devices ops autograd nn_backend)
  file(GLOB_RECURSE sources ${PROJECT_SOURCE_DIR}/${folder}/*.cpp ${PROJECT_SOURCE_DIR}/${folder}/*.cu)
  set_property(SOURCE ${sources} DIRECTORY ${folder} tests APPEND PROPERTY COMPILE_OPTIONS -O1 -w)
endforeach()
set_property(SOURCE ${PROJECT_SOURCE_DIR}/ops/elementwise/chain_simd.cpp DIRECTORY ops tests APPEND PROPERTY COMPILE_OPTIONS -foptimize-sibling-calls)
"""


def write_tree(out, mutants):
    """The tree beside `out`, with every mutant of the list in it; files that do not change keep their time."""
    tree = out / "tree"
    tree.mkdir(exist_ok=True)
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True)
    changed = {"CMakeLists.txt", "core/CMakeLists.txt", "tests/CMakeLists.txt", *(m["file"] for m in mutants)}
    for file in listed.stdout.splitlines():
        if file in changed or not (ROOT / file).exists():
            continue
        rewrite(tree / file, (ROOT / file).read_bytes())
        shutil.copymode(ROOT / file, tree / file)
    rewrite(tree / "core/CMakeLists.txt", (ROOT / "core/CMakeLists.txt").read_text()
            + "target_sources(kassette_core PRIVATE ${PROJECT_SOURCE_DIR}/tests/mutation/mutant.cpp)\n")
    rewrite(tree / "tests/CMakeLists.txt", (ROOT / "tests/CMakeLists.txt").read_text()
            + "target_sources(kassette_tests PRIVATE mutation/listener.cpp)\n")
    planted = all(m["kind"] == "planted" for m in mutants)   # few files change: the others come from the compiler's cache
    rewrite(tree / "CMakeLists.txt", (ROOT / "CMakeLists.txt").read_text() + ("" if planted else QUICK_AND_SILENT))
    by_file = collections.defaultdict(list)
    for m in mutants:
        by_file[m["file"]].append(m)
    for file, ours in by_file.items():
        text = (ROOT / file).read_bytes()
        for m in sorted(ours, key=lambda m: -m["begin"]):
            # A line stays a line, since errors name lines.
            old = text[m["begin"]:m["end"]]
            new = m["new"].replace("MUTANT", f"::kassette::mutation::mutant({m['id']})").encode()
            text = text[:m["begin"]] + new + text[m["end"]:]
            missing = old.count(b"\n")
            if missing:
                at = text.find(b"\n", m["begin"])
                text = text[:at] + b"\n" * missing + text[at:]
        # Warnings of mutants are nobody's.
        quiet = "#pragma GCC system_header\n" if file.endswith((".h", ".cuh")) else ""
        head = f'{quiet}#include "{tree}/tests/mutation/mutant.h"\n#line 1\n'.encode()
        rewrite(tree / file, head + text)


def rewrite(path, text):
    text = text.encode() if isinstance(text, str) else text
    if not path.exists() or path.read_bytes() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)


def build(options):
    out = Path(options.out).resolve()
    plan = json.load(open(out / "mutants.json"))
    mutants = plan["mutants"]
    folder = out / "tree/build"
    while True:
        write_tree(out, mutants)
        if not (folder / "build.ninja").exists():
            subprocess.run(["cmake", "-S", out / "tree", "-B", folder, "-G", "Ninja", "-DKASSETTE_CUDA=OFF", "-DKASSETTE_WERROR=ON",
                            "-DKASSETTE_BENCHMARKS=OFF"], check=True, stdout=subprocess.DEVNULL)
        bad = broken_headers(out, folder, mutants)
        log = ""
        if not bad:
            made = subprocess.run(["ninja", "-C", folder, "-k0", f"-j{options.jobs}", *(["kassette_random_programs"] if plan.get("planted") else ["kassette_tests"])], capture_output=True, text=True)
            if made.returncode == 0:
                break
            log = made.stdout
            (out / "build.log").write_text(log)
            bad = blamed(log, mutants)
        if not bad:
            sys.exit(f"the build fails and no mutant is to blame: {out}/build.log")
        for m in mutants:
            if m["id"] in bad:
                print(f"does not compile: {m['file']}:{m['line']}: {m['shown']}", flush=True)
        mutants = [m for m in mutants if m["id"] not in bad]
        plan["mutants"] = mutants
        json.dump(plan, open(out / "mutants.json", "w"), indent=1)
    print(f"{len(mutants)} mutants compile")


def blamed(log, mutants):
    """The mutants on lines that errors name, or their notes where no error stands on one."""
    by_line = collections.defaultdict(set)
    for m in mutants:
        by_line[(m["file"], m["line"])].add(m["id"])
    bad = set()
    for block in re.split(r"(?m)^FAILED: ", log)[1:]:
        for words in (r"error:", r"(?:error:|note:|  required|required from|In instantiation)"):
            ids = set()
            for line in block.splitlines():
                match = re.match(r"(?:In file included from )?(?:.*?/tree/|(?:\.\./)+)?(\S+?):(\d+):(?:\d+:)?\s+(.*)", line)
                if match and re.match(words, match[3].strip()):
                    ids |= by_line.get((match[1], int(match[2])), set())
                    # Public headers are links to where they are.
                    if match[1].startswith("include/kassette/"):
                        ids |= {m["id"] for m in mutants if m["file"].endswith("/" + Path(match[1]).name) and m["line"] == int(match[2])}
            if ids:
                break
        else:
            ids = in_constants(block, mutants)
        bad |= ids
    return bad


def in_constants(block, mutants):
    """Mutants of members' defaults, which a constant expression reads: the error stands at the end of the class."""
    ids = set()
    for file, line in re.findall(r"(?:\.\./|/tree/)(\S+?):(\d+):\d+: error: call to non-.constexpr. function .*\bmutant\(int\)", block):
        near = [m for m in mutants if m["file"] == file]
        ids |= {min(near, key=lambda m: abs(m["line"] - int(line)))["id"]} if near else set()
    return ids


def broken_headers(out, folder, mutants):
    """A header is compiled once by itself first: an error in it would fail every file."""
    headers = sorted({m["file"] for m in mutants if m["file"].endswith(".h")})
    log = ""
    checked = out / "checked.json"
    known = json.load(open(checked)) if checked.exists() else {}   # header: its mutants
    for header in headers:
        ids = [m["id"] for m in mutants if m["file"] == header]
        if known.get(header) == ids:
            continue
        text = f'#include "{out}/tree/{header}"\n'
        made = subprocess.run(["g++", "-std=c++20", "-w", "-fsyntax-only", f"-I{out}/tree", f"-I{out}/tree/include", "-DKASSETTE_LEVEL=sse2",
                               "-DKASSETTE_VERSION=\"0\"", "-x", "c++", "-"], input=text, capture_output=True, text=True)
        if made.returncode == 0:
            known[header] = ids
        else:
            log += f"FAILED: {header}\n{made.stderr}"
    json.dump(known, open(checked, "w"))
    return blamed(log, mutants)


# ---- Running ---------------------------------------------------------------------------------------------------------


def limits(cpu_seconds):
    def set_limits():
        resource.setrlimit(resource.RLIMIT_CPU, (int(cpu_seconds), int(cpu_seconds) + 5))
        resource.setrlimit(resource.RLIMIT_AS, (12 << 30, 12 << 30))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30))
        Path("/proc/self/oom_score_adj").write_text("1000")
    return set_limits


def call(out, arguments, seconds, environment):
    """The exit status of a run of the tests, or "timeout"; in a folder for its temporary files of its own."""
    with tempfile.TemporaryDirectory(prefix="kassette_mutant_") as scratch:
        full = dict(os.environ, TMPDIR=scratch, KERAS_BACKEND="", KERAS_HOME=scratch, **environment)
        process = subprocess.Popen([str(out / "tree/build/tests/kassette_tests"), *arguments], cwd=scratch, env=full, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True, preexec_fn=limits(10 * seconds + 20))
        try:
            text = process.communicate(timeout=30 * seconds + 60)[0].decode(errors="replace")
            return process.returncode, text
        except subprocess.TimeoutExpired:
            return "timeout", ""
        finally:
            try:
                os.killpg(process.pid, 9)
            except ProcessLookupError:
                pass
            process.wait()


SUITES = {"cpu": {}, "device": {"KASSETTE_TEST_CUDA": "emulated"}}


def record(options):
    out = Path(options.out).resolve()
    plan = json.load(open(out / "mutants.json"))
    cases = []
    for suite, environment in SUITES.items():
        shared, lines = out / f"reached.{suite}", out / f"record.{suite}"
        shared.unlink(missing_ok=True)
        status, text = call(out, ["[device]"] if suite == "device" else [], 600,
                            dict(environment, KASSETTE_MUTANTS_REACHED=str(shared), KASSETTE_MUTANTS_RECORD=str(lines)))
        (out / f"record.{suite}.log").write_text(text)
        if not isinstance(status, int) or status < 0:
            sys.exit(f"mutants.py record: the {suite} tests did not end by themselves ({status}); {out}/record.{suite}.log has what they said")
        first = None
        for line in open(lines):
            name, seconds, failed, ids = line.rstrip("\n").split("\t")
            ids = [int(i) for i in ids.split()]
            if first is None:
                first = ids
                continue
            cases.append(dict(suite=suite, name=name, seconds=float(seconds), failed=failed == "1", ids=sorted(set(ids + first))))
        bad = [c["name"] for c in cases if c["suite"] == suite and c["failed"]]
        print(f"{suite}: {sum(c['suite'] == suite for c in cases)} tests, {sum(c['seconds'] for c in cases if c['suite'] == suite):.0f} s; left out, they fail without a mutant:", bad)
    json.dump(cases, open(out / "cases.json", "w"))
    reached = {i for c in cases for i in c["ids"]}
    unreached = [m for m in plan["mutants"] if m["id"] not in reached]
    print(f"{len(plan['mutants']) - len(unreached)} of {len(plan['mutants'])} mutants are reached")
    for m in unreached:
        print(f"  not reached: {m['id']} {m['file']}:{m['line']}: {m['shown']}")


def test_spec(names):
    return ",".join(re.sub(r'([\\,\["~])', r"\\\1", n) for n in names)


def examine(out, mutant, cases, budget):
    """Tests that reach the mutant, the quickest first, until one fails: ("caught", by whom) or ("survived", tests run)."""
    ran = 0
    for suite, environment in SUITES.items():
        ours = sorted((c for c in cases if c["suite"] == suite and mutant["id"] in c["ids"] and not c["failed"]), key=lambda c: c["seconds"])
        batches, spent = [[]], 0.0
        for c in ours:
            spent += c["seconds"] + 0.002
            if spent > budget:
                break
            if spent > 0.25 * 4 ** len(batches) and batches[-1]:
                batches.append([])
            batches[-1].append(c)
        for batch in filter(None, batches):
            status, text = call(out, ["--abort", test_spec(c["name"] for c in batch)], sum(c["seconds"] for c in batch) + 1,
                                dict(environment, KASSETTE_MUTANT=str(mutant["id"])))
            ran += len(batch)
            if status == 0 and "No test cases matched" not in text:
                continue
            if status == 0:
                return "error", text[:200]
            names = [c["name"] for c in batch]
            failed = next((l.strip() for l in text.splitlines() if l.strip() in names), "")
            how = "timeout" if status == "timeout" or status in (-24, -9) else "crash" if status < 0 or "SIG" in text else "failure"
            return "caught", f"{how}: {failed or names[0] if len(names) == 1 else failed}"
    return ("survived", f"{ran} tests") if ran else ("unreached", "")


def run(options):
    out = Path(options.out).resolve()
    if not (out / "cases.json").exists():
        build(options)
        record(options)
    mutants = json.load(open(out / "mutants.json"))["mutants"]
    cases = json.load(open(out / "cases.json"))
    path = out / "results.json"
    results = json.load(open(path)) if path.exists() else {}
    ids = [int(i) for i in options.ids.split(",")] if options.ids else [m["id"] for m in mutants if str(m["id"]) not in results]
    todo = [m for m in mutants if m["id"] in ids]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        futures = {pool.submit(examine, out, m, cases, options.budget): m for m in todo}
        for done in concurrent.futures.as_completed(futures):
            m = futures[done]
            verdict, detail = done.result()
            results[str(m["id"])] = [verdict, detail]
            print(f"{m['id']}\t{verdict}\t{m['file']}:{m['line']}\t{m['shown']}\t{detail}", flush=True)
            json.dump(results, open(path, "w"))


def hunt(options):
    """The faults that somebody planted: which random programs find them, and after how many."""
    out = Path(options.out).resolve()
    mutants = json.load(open(out / "mutants.json"))["mutants"]
    ids = [int(i) for i in options.ids.split(",")] if options.ids else [0, *(m["id"] for m in mutants)]
    missed = 0
    for i in ids:
        with tempfile.TemporaryDirectory(prefix="kassette_hunt_") as scratch:
            environment = dict(os.environ, KASSETTE_MUTANT=str(i), TMPDIR=scratch, KASSETTE_FIRST_FINDING="1")
            done = subprocess.run([str(out / "tree/build/tests/kassette_random_programs"), "0", str(options.seed), str(options.count)], env=environment,
                                  cwd=scratch, capture_output=True, preexec_fn=limits(600))
            text = done.stdout.decode(errors="replace") + done.stderr.decode(errors="replace")
        m = next((m for m in mutants if m["id"] == i), None)
        how = next((l for l in text.splitlines() if l.startswith("FINDING") or "fatal signal" in l), "")
        found = bool(how) or done.returncode == -24   # where no program ends
        missed += (not found) if m else found
        print(f"{i}\t{'found' if found else 'not found'}\t{m['shown'] if m else 'no fault'}\t{how[:150]}", flush=True)
    sys.exit(1 if missed else 0)


def report(options):
    out = Path(options.out).resolve()
    plan = json.load(open(out / "mutants.json"))
    results = json.load(open(out / "results.json"))
    judged = {}
    if options.judged and Path(options.judged).exists():
        for line in open(options.judged):
            if line.strip() and not line.startswith("#"):
                file, text, shown, verdict, reason = line.rstrip("\n").split("\t")
                judged[(file, text, shown)] = (verdict, reason)
    totals = collections.defaultdict(collections.Counter)
    for m in plan["mutants"]:
        verdict, detail = results.get(str(m["id"]), ["not run", ""])
        source = (ROOT / m["file"]).read_text().splitlines()[m["line"] - 1].strip()
        if verdict != "caught" and (m["file"], source, m["shown"]) in judged:
            verdict, detail = judged[(m["file"], source, m["shown"])]
        totals[m["file"].split("/")[0]][verdict] += 1
        totals["all"][verdict] += 1
        print("\t".join([str(m["id"]), f"{m['file']}:{m['line']}", m["shown"], verdict, detail, "" if verdict == "caught" else source]))
    for folder in [*FOLDERS, "all"]:
        t = totals[folder]
        counted = sum(t.values()) - t["equivalent"]
        print(f"{folder}: {t['caught']} of {counted} caught, {100 * t['caught'] / max(1, counted):.1f} %;",
              ", ".join(f"{n} {k}" for k, n in sorted(t.items()) if k != "caught"))


def main():
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    for f in (draw, build, record, run, report, plant, hunt):
        p = commands.add_parser(f.__name__)
        p.set_defaults(call=f)
        p.add_argument("--out", required=True)
        p.add_argument("--build", default=str(ROOT / "build"))
        p.add_argument("--count", type=int, default=300)
        p.add_argument("--seed", type=int, default=1)
        p.add_argument("--only", default="")
        p.add_argument("--jobs", type=int, default=2)
        p.add_argument("--ids", default="")
        p.add_argument("--budget", type=float, default=1e9, help="seconds of tests for a mutant, the quickest first")
        p.add_argument("--judged", default=str(ROOT / "tests/mutation/judged.tsv"))
    options = parser.parse_args()
    options.call(options)


if __name__ == "__main__":
    main()
