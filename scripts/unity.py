#!/usr/bin/env python3
"""Writes files that each include several source files, which then compile in half of the time: what they have in common is
read and instantiated once.   unity.py FOLDER MOST SOURCE…   prints what was written, one path a line.

What a source file keeps to itself (in an unnamed namespace) has another name while it is included with others, by a macro:
so many files may have an `execute`. A name for which that could change another meaning (a member or a header has it, too)
stays as it is, and two files where it could then be mixed up are not put together. Nor are files with macros or conditions of
their own, with functions in several versions or headers of C, or that use a whole namespace of ours. All headers come first, so that the macros do not reach them.
The text is in the form that clang-format gives it: what belongs to a namespace begins at the first column."""
import functools
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
DECLARED = re.compile(r"\b([A-Za-z_]\w*)\s*(?:[({=;\[]|:(?!:)|$)")
MENTIONED = re.compile(r"(\.|->|::|\b)([A-Za-z_]\w*)")
NO_CODE = re.compile(r"//[^\n]*|^#include[^\n]*|\"(?:[^\"\\\n]|\\.)*\"", re.M)
RAW_STRING = re.compile(r'R"(\w*)\(.*?\)\1"', re.S)
HEADER = re.compile(r'^#include (?:"([^"]+\.hpp)"|(<[^>]+>))', re.M)
# Names that may stand in two files if they mean the same: using declarations and names for namespaces.
USED = re.compile(r"^(?:using (?:enum )?[\w:]+;|namespace \w+ = [\w:]+;)", re.M)
ALONE = re.compile(r"^using namespace (?!testing)|^#(?!include|pragma)|^COMFYD_\w+ |^extern \"C\"", re.M)
TESTS = re.compile(r"^(?:TEST|TEST_F|TEST_P|TYPED_TEST|INSTANTIATE_TEST_SUITE_P|TYPED_TEST_SUITE)\(\s*(\w+),\s*(\w+)", re.M)
NO_NAMES = set(
    "TEST TEST_F TEST_P INSTANTIATE_TEST_SUITE_P TYPED_TEST TYPED_TEST_SUITE MATCHER MATCHER_P public private protected return "
    "const void bool int float double char auto nullptr false true default delete override noexcept final static_assert template operator PrintTo tag_invoke".split())


def own_names(text):
    names, inside = set(), False
    for line in RAW_STRING.sub('""', text).splitlines():
        if line.startswith("namespace {"):
            inside = True
        elif line.rstrip() == "}  // namespace":
            inside = False
        elif USED.match(line) or line.startswith("using namespace "):
            continue
        elif line[:1].isalpha() and (inside or line.startswith(("static ", "constexpr ", "const ", "using "))):
            names.update(DECLARED.findall(NO_CODE.sub("", line).replace(" final ", " "))[:1])
    return names - NO_NAMES


@functools.cache
def offered(header):
    """What a header declares outside of classes, at least; names of parameters mean nothing to others."""
    lines = (NO_CODE.sub("", line) for line in header.read_text().splitlines() if line[:1].isalpha())
    return {name for line in lines for name in re.findall(r"[A-Za-z_]\w*", line.partition("(")[0])}


@functools.cache
def mentioned(path):
    """The names that are looked up where they stand, and those that belong to something."""
    free, members = set(), set()
    for before, name in MENTIONED.findall(NO_CODE.sub("", path.read_text())):
        (members if before else free).add(name)
    return free, members


@functools.cache
def found_header(path, header):
    """Folders are tried as the compiler is told to."""
    places = (folder / header for folder in (path.parent, ROOT / "src", ROOT / "tests"))
    return next((place.resolve() for place in places if place.exists()), None)


def all_headers(path):
    seen, open_ones = set(), [path]
    while open_ones:
        file = open_ones.pop()
        for ours, _ in HEADER.findall(file.read_text()):
            header = found_header(file, ours) if ours else None
            if header and header not in seen:
                seen.add(header)
                open_ones.append(header)
    return seen


class Source:
    def __init__(self, file):
        self.file, self.path = file, pathlib.Path(file).resolve()
        text = self.path.read_text()
        self.headers = all_headers(self.path)
        self.free, members = mentioned(self.path)
        names = own_names(text)
        fixed = members.union(*map(set, TESTS.findall(text)), *map(offered, self.headers))
        self.renamed, self.kept = names - fixed, names & fixed
        self.used = {line: re.findall(r"\w+", line)[1 if line.startswith("namespace") else -1] for line in USED.findall(text)}
        self.enums = {line for line in self.used if line.startswith("using enum ")}
        self.functions = {name for name in self.kept if re.search(rf"^[A-Za-z][^(\n]*\b{name}\(", text, re.M)}
        self.stays_alone = bool(ALONE.search(text))

    @functools.cached_property
    def not_local(self):
        """What it mentions and what is not merely a parameter or a variable of a function of its own."""
        return self.kept.union(self.used.values(), *map(offered, self.headers))

    def clashes(self, other):
        if self.enums != other.enums:
            return True  # what an enum brings along does not stand in the file
        names = self.kept | {name for line, name in self.used.items() if line not in other.used}
        met = other.free - other.renamed - (self.functions - other.not_local)
        return bool(names & met) or any(names & offered(h) for h in other.headers - self.headers)


def grouped(files, most):
    sources = [Source(file) for file in files]
    apart = {source: {other for other in sources if source.clashes(other) or other.clashes(source)} for source in sources}
    groups = []
    # Those that clash with many are spread first, while the groups have room.
    for source in sorted(sources, key=lambda source: -len(apart[source])):
        open_ones = [] if source.stays_alone else [g for g in groups if len(g) < most and not g[0].stays_alone]
        group = next((g for g in open_ones if not apart[source].intersection(g)), None)
        if group is None:
            group = []
            groups.append(group)
        group.append(source)
    return groups


def write(path, sources):
    headers = set()
    for source in sources:
        for ours, theirs in HEADER.findall(source.path.read_text()):
            headers.add(theirs or f'"{found_header(source.path, ours) or ours}"')
    lines = [f"#include {header}" for header in sorted(headers)]
    for number, source in enumerate(sources):
        lines += [f"#define {name} {name}_{number}" for name in sorted(source.renamed)]
        lines += [f'#include "{source.path}"']
        lines += [f"#undef {name}" for name in sorted(source.renamed)]
    text = "\n".join(lines) + "\n"
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def main():
    folder, most, files = pathlib.Path(sys.argv[1]), int(sys.argv[2]), sorted(sys.argv[3:])
    folder.mkdir(parents=True, exist_ok=True)
    for number, sources in enumerate(grouped(files, most)):
        path = folder / f"{number}.cpp" if len(sources) > 1 else sources[0].file
        if len(sources) > 1:
            write(path, sources)
        print(path)


main()
