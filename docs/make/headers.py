"""docs/make/headers.py - reads what the public headers declare, and the comments above it.

The public headers are those in include/kassette/. Each declaration in one, in a namespace or in
the public part of a class, is read; one that is not understood is an error, so that no name is missed in silence. The comments, which `help`
in the REPL reads as well, have this form:
- lines of `///` right above a declaration are its comment; declarations that follow without a blank line or a comment of their
  own share it;
- lines of `//` between blank lines are remarks on the whole header;
- what stands in a namespace `detail` is private.
An example is not here but in docs/api, in the page of the header that stands there as the header does in include/kassette, below the heading of
its name.
"""
import re

TOKEN = re.compile(r'(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<directive>^[ \t]*#(?:[^\n]*\\\n)*[^\n]*)|(?P<text>"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')'
                   r"|(?P<word>[A-Za-z_0-9]+(?:\.[0-9]\w*)?)|(?P<sign>::|->|\.\.\.|\[\[|\]\]|\S)|(?P<newline>\n)", re.M | re.S)
OPENING, CLOSING = {"(": ")", "[": "]", "{": "}", "[[": "]]"}, {")", "]", "}", "]]"}
FOLDERS = ("include/kassette", "include/kassette/backend", "include/kassette/nn", "include/kassette/numpy")
# What the names of pages of a folder begin with.
PREFIXES = {"nn": "nn_", "numpy": "numpy_"}
SPECIFIERS = {"inline", "constexpr", "static", "explicit", "virtual", "extern", "mutable", "friend", "typedef", "KASSETTE_API"}


class Token:
    def __init__(self, kind, text, start, line):
        self.kind, self.text, self.start, self.end, self.line = kind, text, start, start + len(text), line


class Entry:
    """A name that a header declares: kind is function, class, enum, alias, variable or macro; `members` are the public ones of a class."""

    def __init__(self, kind, name, scopes, comment, code):
        self.kind, self.name, self.scopes, self.comment, self.code = kind, name, scopes, comment, code
        self.signatures, self.members, self.forward, self.of_type = [], [], False, ""

    def in_backend(self):
        return self.scopes[:2] == ["kassette", "backend"]


class Header:
    def __init__(self, path, folder):
        self.path, self.name, self.folder = path, PREFIXES.get(folder.rpartition("/")[2], "") + path.stem, folder
        self.title, self.remarks, self.entries, self.specialised, self.hidden = "", [], [], [], set()

    @property
    def page(self):
        """The page of its examples, below docs/api."""
        return (self.folder.removeprefix("include/kassette") + f"/{self.path.stem}.md").removeprefix("/")

    @property
    def functions(self):
        return [e for e in self.entries if e.kind == "function"]

    @property
    def family(self):
        """Whether it is one of K's headers."""
        return any(e.in_backend() for e in self.entries)


class NotUnderstood(Exception):
    pass


def tokens_of(text):
    out, line, at = [], 1, 0
    for match in TOKEN.finditer(text):
        line, at = line + text.count("\n", at, match.start()), match.start()
        if match.lastgroup != "newline":
            out.append(Token(match.lastgroup, match[0], match.start(), line))
    return out


def closing(tokens, at):
    """The place of the bracket that closes the one at `at`."""
    depth = 0
    for place in range(at, len(tokens)):
        if tokens[place].kind == "sign":
            depth += (tokens[place].text in OPENING) - (tokens[place].text in CLOSING)
        if depth == 0:
            return place
    raise NotUnderstood(f"line {tokens[at].line}: no closing bracket")


def skip_angles(tokens, at):
    """Behind the template arguments that begin with `<` at `at`."""
    depth, place = 0, at
    while place < len(tokens):
        text = tokens[place].text
        if text in OPENING:
            place = closing(tokens, place)
        elif text in "<>":
            depth += 1 if text == "<" else -1
            if depth == 0:
                return place + 1
        place += 1
    raise NotUnderstood(f"line {tokens[at].line}: no closing '>'")


def stripped(tokens):
    """A declaration without its templates, attributes and specifiers; and whether it is a friend's."""
    at, friend = 0, False
    while at < len(tokens):
        text = tokens[at].text
        if text == "template":
            at = skip_angles(tokens, at + 1)
        elif text == "[[":
            at = closing(tokens, at) + 1
        elif text in SPECIFIERS:
            friend = friend or text == "friend"
            at += 1
        else:
            break
    return tokens[at:], friend


def declarators(tokens):
    """The names of a variable's declaration, `Tensor a, b = c;`, and its type."""
    names, current, at, type_end = [], None, 0, None
    while at < len(tokens):
        token = tokens[at]
        if token.text == "<" and at and tokens[at - 1].kind == "word":
            at = skip_angles(tokens, at)
            continue
        if token.text in (",", ";"):
            names.append(current)
            current = None
        elif token.text in ("=", "{", "[", ":") and current:
            while at < len(tokens) and tokens[at].text not in (",", ";"):
                at = closing(tokens, at) + 1 if tokens[at].text in OPENING else at + 1
            continue
        elif token.text in OPENING:
            at = closing(tokens, at)
        elif token.kind == "word":
            if not names:
                type_end = at
            current = token.text
        at += 1
    if not names or None in names:
        raise NotUnderstood(f"line {tokens[0].line}: '{' '.join(t.text for t in tokens)[:120]}'")
    return names, "".join(t.text for t in tokens[:type_end])


def function_name(tokens):
    """The name of a function, or None where the tokens declare no function."""
    at = 0
    while at < len(tokens):
        token = tokens[at]
        if token.text == "operator":
            if tokens[at + 1].text == "(":
                return "operator()"
            sign = tokens[at + 1:next(i for i in range(at + 1, len(tokens)) if tokens[i].text == "(")]
            return "operator" + (" " if sign[0].kind == "word" else "") + "".join(t.text for t in sign)
        if token.text == "<" and at and tokens[at - 1].kind == "word":
            at = skip_angles(tokens, at)
            continue
        if token.text in ("decltype", "noexcept", "__attribute__", "alignas") and tokens[at + 1].text == "(":
            at = closing(tokens, at + 1) + 1
            continue
        if token.text == "(":
            if tokens[at + 1].text == "*":
                return None   # a pointer to a function
            if tokens[at - 1].kind != "word":
                raise NotUnderstood(f"line {token.line}: '{' '.join(t.text for t in tokens)[:120]}'")
            return ("~" if at > 1 and tokens[at - 2].text == "~" else "") + tokens[at - 1].text
        if token.text in ("=", "{", ";"):
            return None
        at += 1
    return None


def expanded(text):
    """The text with its lists written out: LIST(MACRO), where `#define LIST(X) X(...) X(...)` and MACRO are macros of this header."""
    macros = {m[1]: ([p.strip() for p in m[2].split(",")], m[3].replace("\\\n", " ").strip())
              for m in re.finditer(r"^#define (\w+)\(([^)]*)\)[ \t]*((?:[^\n]*\\\n)*[^\n]*)", text, re.M)}

    def call(name, arguments):
        parameters, body = macros[name]
        body = re.sub(r"\w+", lambda m: dict(zip(parameters, arguments)).get(m[0], m[0]), body)
        return re.sub(r"(\w+)\(([^()]*)\)", lambda m: call(m[1], [a.strip() for a in m[2].split(",")]) if m[1] in macros else m[0], body)

    lists = "|".join(name for name, (parameters, _) in macros.items() if parameters == ["X"])
    return re.sub(rf"^(?!#)(.*)\b({lists})\((\w+)\)", lambda m: m[1] + call(m[2], [m[3]]), text, flags=re.M) if lists else text


class Reader:
    def __init__(self, header, text):
        text = expanded(text)
        self.header, self.text, self.lines = header, text, text.splitlines()
        self.all = tokens_of(text)

    def comment_above(self, line):
        """The `///` lines that end right above a line, or None."""
        first = line - 1
        while first >= 1 and self.lines[first - 1].lstrip().startswith("///"):
            first -= 1
        return "\n".join(l.lstrip()[4:] for l in self.lines[first:line - 1]) if first < line - 1 else None

    def read(self):
        self.header.title = re.sub(r"^// \S+ - (.*?)\.?$", r"\1", self.lines[0])
        self.read_remarks()
        for token in self.all:
            macro = re.match(r"\s*#\s*define\s+(\w+)", token.text) if token.kind == "directive" else None
            undefined = macro and re.search(rf"^#undef {macro[1]}$", self.text, re.M)
            if macro and not undefined and not re.fullmatch(r"KASSETTE_\w*_H", macro[1]):
                self.header.entries.append(Entry("macro", macro[1], [], self.comment_above(token.line) or "", token.text.strip()))
        self.scope([t for t in self.all if t.kind not in ("comment", "directive")], [], None)

    def read_remarks(self):
        """Blocks of `//` at the left margin, with a blank line or a directive behind."""
        block = []
        for line in self.lines[1:] + [""]:
            if line.startswith("//") and not line.startswith("///"):
                block.append(line[3:])
                continue
            if block and (not line or line.startswith("#")) and not block[0].startswith("----"):
                remark = " ".join(block).strip()
                if remark:
                    self.header.remarks.append(remark)
            block = []

    def scope(self, tokens, scopes, owner):
        """Reads the declarations of a namespace (owner None) or of a class, whose entry gets the members."""
        at, last_line, last_comment = 0, -1, ""
        public = owner is None or not self.is_class
        while at < len(tokens):
            if owner and tokens[at].text in ("public", "protected", "private") and tokens[at + 1].text == ":":
                public = tokens[at].text == "public"
                at += 2
                continue
            if tokens[at].text == ";":
                at += 1
                continue
            if tokens[at].text == "namespace" and tokens[at + 2].text == "{":
                end = closing(tokens, at + 2)
                if tokens[at + 1].text != "detail":
                    self.scope(tokens[at + 3:end], [*scopes, tokens[at + 1].text], None)
                at = end + 1
                continue
            end = self.end_of(tokens, at)
            declaration = tokens[at:end]
            if public:
                own = self.comment_above(declaration[0].line)
                comment = own if own is not None else last_comment if declaration[0].line == last_line + 1 else ""
                self.declare(declaration, scopes, owner, comment)
                last_line, last_comment = declaration[-1].line, comment
            else:
                self.header.hidden.add(function_name(stripped(declaration)[0]))
            at = end

    def end_of(self, tokens, at):
        """Behind the declaration that begins at `at`: its semicolon, or the brace that ends a function's body."""
        defines_type = any(t.text in ("class", "struct", "union", "enum") for t in stripped(tokens[at:at + 400])[0][:1])
        place = at
        while place < len(tokens):
            text = tokens[place].text
            if text == ";":
                return place + 1
            if text == "template":
                place = skip_angles(tokens, place + 1)
                continue
            if text in OPENING:
                brace = text == "{"
                place = closing(tokens, place) + 1
                following = tokens[place].text if place < len(tokens) else ""
                if brace and not defines_type and following not in (";", ",", "{"):
                    return place
                continue
            place += 1
        raise NotUnderstood(f"line {tokens[at].line}: no end of the declaration")

    def declare(self, tokens, scopes, owner, comment):
        rest, friend = stripped(tokens)
        first = rest[0].text
        code = self.text[tokens[0].start:tokens[-1].end]
        if first == "static_assert" or first == "namespace":
            return
        if first == "using":
            # `using kassette::Tensor;` repeats a name that another header declares.
            if rest[2].text == "=":
                self.add(Entry("alias", rest[1].text, scopes, comment, code), owner)
            return
        if first in ("class", "struct", "union", "enum"):
            if not friend:
                self.declare_type(tokens, rest, scopes, owner, comment, code)
            return
        name = function_name(rest)
        if name is None:
            pointer = next((i for i, t in enumerate(rest) if t.text == "(" and rest[i + 1].text == "*"), None)
            names, of_type = ([rest[pointer + 2].text], "") if pointer is not None else declarators(rest)
            for n in names:
                entry = Entry("variable", n, scopes, comment, code)
                entry.of_type = of_type
                self.add(entry, owner)
            return
        if owner and (name == owner.name or name.startswith("~") or name == "operator=") or [t.text for t in tokens[-3:]] == ["=", "delete", ";"]:
            return
        if any(t.text in ("KASSETTE_UNAVAILABLE", "KASSETTE_DELETED") for t in rest):
            return   # says what to write instead
        if any(t.text == name and rest[i - 1].text == "::" for i, t in enumerate(rest) if i) and not owner:
            return   # defines a member that its class declares
        where = None if friend and not name.startswith("operator") else owner
        scope_entries = where.members if where else self.header.entries
        found = next((e for e in scope_entries if e.kind == "function" and e.name == name and e.scopes == scopes), None)
        if not found:
            found = Entry("function", name, scopes, "", code)
            self.add(found, where)
        if comment and comment not in found.comment:
            found.comment += ("\n\n" if found.comment else "") + comment
        found.signatures.append(self.signature(tokens))

    def declare_type(self, tokens, rest, scopes, owner, comment, code):
        kind = "enum" if rest[0].text == "enum" else "class"
        body = next((i for i, t in enumerate(rest) if t.text == "{"), None)
        head = [t for t in rest[:body] if t.text not in ("class", "struct", "union", "enum", "KASSETTE_API")]
        if not head and owner and rest[0].text == "union":
            self.members(rest, body, owner, scopes)   # without a name: its members are the class's
            return
        if head and head[1:] and head[1].text == "<":
            # A specialisation: its members are those of the template, which is declared above it with its comment.
            entry = next((e for e in self.header.entries if e.name == head[0].text), None)
            if not entry:
                self.header.specialised.append(head[0].text)
            elif body is not None:
                entry.code += "\n" + code
                entry.forward = False
                self.members(rest, body, entry, scopes)
            return
        if not head or head[0].kind != "word" or head[0].text == ";" or body is None and head[1].text != ";" and head[1].text != ":":
            raise NotUnderstood(f"line {tokens[0].line}: '{code[:120]}'")
        entry = Entry(kind, head[0].text, scopes, comment, code)
        entry.forward = body is None
        if body is not None and kind == "class":
            self.members(rest, body, entry, scopes)
        elif body is not None:
            inside, expected = rest[body + 1:closing(rest, body)], True
            for token in inside:
                if expected and token.kind == "word":
                    entry.members.append(Entry("enumerator", token.text, scopes, "", ""))
                expected = token.text == ","
        self.add(entry, owner)

    def members(self, rest, body, entry, scopes):
        was = getattr(self, "is_class", False)
        self.is_class = rest[0].text == "class"
        self.scope(rest[body + 1:closing(rest, body)], scopes, entry)
        self.is_class = was

    def add(self, entry, owner):
        (owner.members if owner else self.header.entries).append(entry)

    def signature(self, tokens):
        """A function's declaration in one line, without body, attributes and what is only the compiler's business."""
        end, at = len(tokens), 0
        while at < len(tokens):
            if tokens[at].text in ("{", ";") or tokens[at].text == ":" and tokens[at - 1].text == ")":
                end = at
                break
            at = closing(tokens, at) + 1 if tokens[at].text in OPENING else at + 1
        text = re.sub(r"\s+", " ", self.text[tokens[0].start:tokens[end - 1].end])
        return re.sub(r"KASSETTE_API |\[\[\w+\]\] |\b(inline|friend) ", "", text).strip()


def read_header(path, folder):
    """What a header declares; None where it is not public."""
    text = path.read_text()
    if re.search(r"^#pragma once", text, re.M):
        return None
    header = Header(path, folder)
    try:
        Reader(header, text).read()
    except NotUnderstood as e:
        raise SystemExit(f"{path}: {e}: docs/make/headers.py does not understand this declaration")
    return header


def read_headers(source):
    """All public headers that declare names; none.h declares X11's."""
    found = [read_header(path, folder) for folder in FOLDERS for path in sorted((source / folder).glob("*.h"))]
    return [header for header in found if header and header.entries and header.name != "none"]
