"""Reads the project's documents: their blocks, and what they say that sources can answer."""
import dataclasses
import re

from conftest import ROOT

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
COMMENT = re.compile(r"<!--\s*((?:(?!-->).)*?)\s*-->\n*\Z", re.S)
NOT_RUN = re.compile(r"not run by the documents' test: (.+)", re.S)
EXIT_CODE = re.compile(r"exits with code (\d+)")
PLACEHOLDER = re.compile(r"<[a-z ]+>|\.\.\.")


@dataclasses.dataclass
class Block:
    """One fenced block of a document."""
    document: str
    line: int
    language: str
    text: str
    not_run: str = ""  # the reason
    exit_code: int = 0

    def __str__(self):
        return f"{self.document}:{self.line}"


def documents():
    """Paths below the root, in a fixed order."""
    found = [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")]
    found += sorted((ROOT / "docs").rglob("*.md"))
    return [str(path.relative_to(ROOT)) for path in found if path.exists()]


def text_of(document):
    return (ROOT / document).read_text(encoding="utf-8")


def blocks_in(text, document="text"):
    """Every block; the HTML comment directly above one says how it is to be run."""
    blocks = []
    for match in FENCE.finditer(text):
        block = Block(document, text.count("\n", 0, match.start()) + 1, match[1], match[2])
        comment = COMMENT.search(text[:match.start()])
        if comment:
            reason, code = NOT_RUN.search(comment[1]), EXIT_CODE.search(comment[1])
            block.not_run = reason[1] if reason else ""
            block.exit_code = int(code[1]) if code else 0
        blocks.append(block)
    return blocks


def blocks(document, *languages):
    found = blocks_in(text_of(document), document)
    return [block for block in found if not languages or block.language in languages]


def section(text, heading):
    """What stands under a heading, up to the next one of its level or above."""
    match = re.search(rf"^(#+) {re.escape(heading)}$", text, re.M)
    assert match, f"no heading '{heading}'"
    end = re.compile(rf"^#{{1,{len(match[1])}}} ", re.M).search(text, match.end())
    return text[match.end():end.start() if end else len(text)]


def first_cells(text):
    """The first cell of each row of the tables, without their headers."""
    rows = re.findall(r"^\|(.*?)\|.*$", text, re.M)
    cells = [row.strip() for row in rows]
    lines = [i for i, cell in enumerate(cells) if re.fullmatch(r":?-+:?", cell)]
    return [cell for i, cell in enumerate(cells) if i not in lines and i + 1 not in lines]


def code_cells(text):
    """The code in the first cells: `--set KEY=VALUE` as "--set KEY=VALUE"."""
    return [code for cell in first_cells(text) for code in re.findall(r"`([^`]+)`", cell)]


def quoted_messages(text):
    """Headings that are one piece of code: the messages that troubleshooting explains."""
    return re.findall(r"^#+ `([^`]+)`$", text, re.M)


class Literals:
    """The string literals of the sources, those written in pieces put together."""

    def __init__(self, sources):
        piece = r'"(?:\\.|[^"\\\n])*"'
        self.all = set()
        for text in sources:
            code = re.sub(r"^\s*(?:#include|//).*$", "", text, flags=re.M)
            for run in re.findall(rf"{piece}(?:\s*{piece})*", code):
                parts = re.findall(r'"((?:\\.|[^"\\\n])*)"', run)
                self.all.add(re.sub(r"\\(.)", r"\1", "".join(parts)))
        self.all.discard("")

    def hold(self, text):
        """Whether the program can say this: part of one literal, or the end of one, whole ones and
        the beginning of another."""
        if any(text in literal for literal in self.all):
            return True
        return any(literal.endswith(text[:end]) and self._go_on(text[end:])
                   for end in range(2, len(text)) for literal in self.all)

    def _go_on(self, text):
        if any(literal.startswith(text) for literal in self.all):
            return True
        return any(len(literal) > 1 and text.startswith(literal) and
                   self._go_on(text[len(literal):]) for literal in self.all)


def fixed_parts(message):
    """What is left of a message without its placeholders: "rank <n> is gone" -> " is gone"."""
    return [part for part in PLACEHOLDER.split(message) if len(part.strip(" :,;.'\"()")) > 2]
