#!/usr/bin/env python3
"""docs/make/links.py SOURCE [SITE] - finds links that lead nowhere: in the pages of docs/ and at the root, and in the HTML of a built site;
and files and functions that the pages for contributors name and the sources do not have.

A link inside goes to a file of the repository or the site, and to a heading of it behind `#`. Links outside are not followed.
"""
import html.parser
import pathlib
import re
import sys
import urllib.parse

sys.dont_write_bytecode = True
import headers
import markdown


def anchor_of(title):
    """What Python-Markdown and GitHub make of a heading."""
    text = re.sub(r"[^\w\s-]", "", re.sub(r"`|\[([^]]*)\]\([^)]*\)", r"\1", title)).strip().lower()
    return re.sub(r"[\s]+", "-", text)


def pages(source):
    return [*sorted(source.glob("*.md")), source / "benchmarks/README.md", *sorted(source.glob("docs/**/*.md"))]


def check_markdown(source):
    complaints, count = [], 0
    # The pages that docs/make/site.py makes of a header and its examples.
    made = {f"docs/reference/{h.name}.md": {e.name.lower() for e in h.entries} for h in headers.read_headers(source)}
    made["docs/reference/index.md"] = set()
    anchors = {page.relative_to(source).as_posix(): {anchor_of(s.title) for s in markdown.sections(page.read_text())} for page in pages(source)} | made
    for page in pages(source):
        name = page.relative_to(source).as_posix()
        prose = "\n".join(part for s in markdown.sections(page.read_text()) for part in [s.title, *s.parts] if isinstance(part, str))
        for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", prose)):
            count += 1
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = target.partition("#")
            to = (page.parent / path).resolve().relative_to(source).as_posix() if path else name
            if to not in made and not (source / to).exists():
                complaints.append(f"{name}: {target} is not there")
            elif anchor and anchor not in anchors.get(to, ()):
                complaints.append(f"{name}: {target}: no such heading")
    return count, complaints


def check_guide(source):
    """Files and members that the pages for contributors name: `folder/file.cpp`, and `Class::member` in the sources."""
    folders = "include|core|devices|ops|autograd|nn_backend|python|tests|benchmarks|tools|docs|examples|cmake|third_party"
    code = "\n".join(path.read_text() for folder in ("include", "core", "devices", "ops", "autograd", "nn_backend")
                     for path in sorted((source / folder).rglob("*.*")) if path.suffix in (".h", ".cpp"))
    count, complaints = 0, []
    for page in [source / "CONTRIBUTING.md", source / "SECURITY.md", source / "docs/architecture.md", *sorted(source.glob("docs/architecture/*.md"))]:
        text, where = page.read_text(), page.relative_to(source)
        # NAME stands for the name of a new family.
        files = set(re.findall(rf"(?<![\w/.-])(?:{folders})(?:/[\w.]+)*/[\w]+\.(?:cpp|h|cu|cuh|py|sh|tsv|md|txt)\b", text))
        files = {name for name in files if "NAME" not in name}
        members = set(re.findall(r"`(?!K::)(\w+::\w+)", text)) - {"std::int64_t"}
        count += len(files) + len(members)
        complaints += [f"{where}: there is no {name}" for name in sorted(files) if not (source / name).exists()]
        for name in sorted(members):
            owner, member = name.split("::")
            if owner == "kassette":
                found = re.search(rf"\b{member}\(", code)
            else:
                found = re.search(rf"\b{owner}\b", code) and re.search(rf"\b{member}\b", code)
            if not found:
                complaints.append(f"{where}: no source has {name}")
    return count, complaints


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.ids, self.links = set(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for key, value in attributes:
            if key in ("id", "name"):
                self.ids.add(value)
            if value and (key == "href" or key == "src" and tag != "a"):
                self.links.append(value)


def check_site(site):
    found = {path: Page(path.read_text()) for path in sorted(site.rglob("*.html"))}
    complaints, count = [], 0
    for path, page in found.items():
        for link in page.links:
            count += 1
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc or path.name == "404.html" and link.startswith("/"):
                continue
            to = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            to = to / "index.html" if to.is_dir() else to
            if not to.exists():
                complaints.append(f"{path.relative_to(site)}: {link} is not there")
            elif parts.fragment and to in found and parts.fragment not in found[to].ids:
                complaints.append(f"{path.relative_to(site)}: {link}: no such place")
    return count, complaints


def main():
    source = pathlib.Path(sys.argv[1]).resolve()
    count, complaints = check_markdown(source)
    named, missing = check_guide(source)
    count, complaints = count + named, complaints + missing
    if len(sys.argv) > 2:
        more, found = check_site(pathlib.Path(sys.argv[2]).resolve())
        count, complaints = count + more, complaints + found
    for complaint in complaints:
        print(complaint)
    print(f"{count} links and names, {len(complaints)} of them lead nowhere")
    sys.exit(1 if complaints else 0)


main()
