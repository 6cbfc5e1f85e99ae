"""docs/make/markdown.py - Markdown pages as this repository writes them: headings, prose and fenced blocks."""
import re


class Block:
    """A fenced block: its language, its lines, and the line of the page that its content begins with (from 1)."""

    def __init__(self, language, lines, line):
        self.language, self.lines, self.line = language, lines, line

    def text(self):
        return "".join(line + "\n" for line in self.lines)


class Section:
    """What stands below one heading: lines of prose and Blocks, in order. The first has no heading."""

    def __init__(self, level, title):
        self.level, self.title, self.parts = level, title, []

    def blocks(self, language):
        return [part for part in self.parts if isinstance(part, Block) and part.language == language]


class Names:
    """A heading of level 2 of a page of docs/api, which lists names, with all sections down to the next such heading."""

    def __init__(self, section):
        self.names, self.sections = section.title.split(", "), [section]

    def blocks(self, language):
        return [block for section in self.sections for block in section.blocks(language)]


def entries(all_sections):
    """The entries of a page of docs/api."""
    out = []
    for section in all_sections:
        if section.level == 2:
            out.append(Names(section))
        elif out:
            out[-1].sections.append(section)
    return out


def sections(text):
    """The sections of a page, one per heading of any level."""
    out = [Section(0, "")]
    block = None
    for number, line in enumerate(text.splitlines(), 1):
        if block is not None:
            if line.startswith("```"):
                block = None
            else:
                block.lines.append(line)
        elif line.startswith("```"):
            block = Block(line[3:].strip(), [], number + 1)
            out[-1].parts.append(block)
        elif heading := re.match(r"(#+) (.*)", line):
            out.append(Section(len(heading[1]), heading[2].strip()))
        else:
            out[-1].parts.append(line)
    return out
