#!/usr/bin/env python3
"""Writes files that each include several source files, which then compile in half of the time: what they have in common is
read and instantiated once.   unity.py FOLDER MOST SOURCE…   prints what was written, one path a line.

Two source files are put together only where no name that one of them keeps to itself (in an unnamed namespace, or as a
macro) occurs in the other, or in a header of ours that only the other includes, in whatever sense: so nothing can clash,
and nothing can be found that would not have been found. Headers come first, so that theirs do not find such names either.
The text is in the form that clang-format gives it: what belongs to a namespace begins at the first column."""
import functools
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
DECLARED = re.compile(r"(\w+)\s*(?:[({=;\[]|$)")
WORD = re.compile(r"[A-Za-z_]\w*")
# Macros of the test library, which stand where a declaration would.
NO_NAMES = {"TEST", "TEST_F", "TEST_P", "INSTANTIATE_TEST_SUITE_P", "TYPED_TEST", "TYPED_TEST_SUITE", "public", "private", "return"}


def own_names(text):
    names, inside = set(), False
    for line in text.splitlines():
        if line.startswith("namespace {"):
            inside = True
        elif line.startswith("}  // namespace") and line.rstrip() == "}  // namespace":
            inside = False
        elif line.startswith("#define"):
            names.update(WORD.findall(line)[1:2])
        elif line.startswith("using ") and "::" in line and "=" not in line:
            continue  # twice is as good as once
        elif line.startswith("namespace ") and "=" in line:
            continue  # likewise
        elif line[:1].isalpha() and (inside or line.startswith(("static ", "constexpr ", "const ", "using "))):
            names.update(DECLARED.findall(line.split("//")[0]))
    return names - NO_NAMES


@functools.cache
def words_of(path):
    return frozenset(WORD.findall(re.sub(r"//[^\n]*", "", path.read_text())))


@functools.cache
def included(path):
    """The headers of ours that a file includes, by itself: folders are tried as the compiler is told to."""
    found = set()
    for header in re.findall(r'^#include "([^"]+)"', path.read_text(), re.M):
        for folder in (path.parent, ROOT / "src", ROOT / "tests"):
            if (folder / header).exists():
                found.add((folder / header).resolve())
                break
    return frozenset(found)


def all_headers(path):
    seen, open_ones = set(), [path]
    while open_ones:
        for header in included(open_ones.pop()) - seen:
            seen.add(header)
            open_ones.append(header)
    return seen


class Source:
    def __init__(self, file):
        path = pathlib.Path(file).resolve()
        self.file, self.names, self.words, self.headers = file, own_names(path.read_text()), words_of(path), all_headers(path)

    def clashes(self, other):
        return bool(self.names & other.words) or any(self.names & words_of(h) for h in other.headers - self.headers)


def grouped(sources, most):
    groups = []
    for source in map(Source, sources):
        group = next((g for g in groups if len(g) < most and not any(source.clashes(o) or o.clashes(source) for o in g)), None)
        if group is None:
            group = []
            groups.append(group)
        group.append(source)
    return [[source.file for source in group] for group in groups]


def write(path, files):
    headers = set()
    for file in map(pathlib.Path, files):
        for header in re.findall(r'^#include "([^"]+)"', file.read_text(), re.M):
            beside = file.parent / header
            headers.add(str(beside) if beside.exists() else header)
    text = "".join(f'#include "{header}"\n' for header in sorted(headers)) + "".join(f'#include "{file}"\n' for file in files)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def main():
    folder, most, sources = pathlib.Path(sys.argv[1]), int(sys.argv[2]), sorted(sys.argv[3:])
    folder.mkdir(parents=True, exist_ok=True)
    for number, files in enumerate(grouped(sources, most)):
        path = folder / f"{number}.cpp" if len(files) > 1 else pathlib.Path(files[0])
        if len(files) > 1:
            write(path, files)
        print(path)


main()
