"""The code blocks of a page, and what the page says about running them.

    sh        runs, in bash, from top to bottom; a command that fails fails the test
    console   the commands after "$ " run, and print what stands there; a line "…" stands for any lines
    yaml      is a configuration that comfyd takes
    json      parses; so does each line of jsonl
    text, js  are only shown

A comment in the line above a block changes that: <!-- not run: why -->, or <!-- output varies -->.
"""
import dataclasses
import re

KINDS = {"sh", "console", "yaml", "json", "jsonl", "text", "js"}
NOT_RUN = re.compile(r"<!-- not run: .{10,} -->")
VARIES = "<!-- output varies -->"


@dataclasses.dataclass
class Block:
    line: int
    kind: str
    text: str
    runs: bool
    varies: bool

    def commands(self):
        """Of a console: pairs of a command and what it prints."""
        pairs = []
        for line in self.text.splitlines(keepends=True):
            if line.startswith("$ "):
                pairs.append([line[2:], ""])
            elif pairs and pairs[-1][0].endswith("\\\n"):
                pairs[-1][0] += line
            else:
                pairs[-1][1] += line
        return pairs


def blocks_of(path):
    found = []
    lines = path.read_text().splitlines()
    at = 0
    while at < len(lines):
        if re.match(r"    \S", lines[at]) and at and not lines[at - 1]:
            before = next((line for line in reversed(lines[:at]) if line), "")
            if not re.match(r" *([-*]|\d+\.) |  ", before):
                raise ValueError(f"{path.name}:{at + 1}: put code between ``` lines that say what it is")
        opening = re.match(r"( *)```(\w*)$", lines[at])
        if opening:
            end = next(i for i in range(at + 1, len(lines)) if lines[i].strip() == "```")
            if opening[2] not in KINDS:
                raise ValueError(f"{path.name}:{at + 1}: a block is one of {', '.join(sorted(KINDS))}")
            above = lines[at - 1].strip() if at else ""
            text = "".join(line[len(opening[1]):] + "\n" for line in lines[at + 1:end])
            found.append(Block(at + 1, opening[2], text, not NOT_RUN.fullmatch(above), above == VARIES))
            at = end
        at += 1
    return found


def matches(expected, actual):
    """Line by line; "…" stands for any number of lines, or at the end of a line for the rest of it."""
    pattern = ""
    for line in expected.rstrip("\n").split("\n"):
        if line.strip() == "…":
            pattern += "(?:.*\n)*"
        else:
            pattern += ".*".join(re.escape(part.rstrip()) for part in line.split("…")) + " *\n"
    return re.fullmatch(pattern, actual.rstrip("\n") + "\n") is not None
