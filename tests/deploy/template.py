"""Renders the templates of a chart: the part of Helm's language that deploy/helm uses, and nothing else. What it does not know
is an error, so that templates stay as plain as this.

    {{ .Values.a.b }}  {{ .Chart.X }}  {{ .Release.X }}  "text"  $ is not known
    {{ value | function argument | … }}, (…) and the functions below
    {{- if … }} {{- if not … }} {{- with … }} {{- end }} {{- define "name" -}} {{- include "name" . }}
"""
import hashlib
import re

import yaml

ACTION = re.compile(r"(\s*)\{\{(-?)\s*(.*?)\s*(-?)\}\}(\s*)", re.S)
WORD = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[()|]|[^\s()|"]+)')


class TemplateError(Exception):
    pass


def to_yaml(value):
    return yaml.safe_dump(value, default_flow_style=False, sort_keys=True, width=1000).removesuffix("...\n").rstrip("\n")


def text_of(value):
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def required(message, value):
    if not value:
        raise TemplateError(message)
    return value


FUNCTIONS = {
    "quote": lambda value: '"' + text_of(value).replace("\\", "\\\\").replace('"', '\\"') + '"',
    "nindent": lambda count, text: "\n" + "\n".join(" " * count + line if line else line for line in text.split("\n")),
    "toYaml": to_yaml,
    "default": lambda otherwise, value: value or otherwise,
    "printf": lambda form, *values: form % tuple(text_of(value) for value in values),
    "join": lambda between, values: between.join(text_of(value) for value in values),
    "sha256sum": lambda text: hashlib.sha256(text.encode()).hexdigest(),
    "required": required,
    "not": lambda value: not value,
}


def parse(source):
    """A list of texts and actions; blanks beside a dash are gone."""
    parts, at = [], 0
    for found in ACTION.finditer(source):
        before, left, body, right, after = found.groups()
        parts.append(source[at:found.start()] + ("" if left else before))
        parts.append(("action", body))
        at = found.end() - (0 if right else len(after))
    return parts + [source[at:]]


class Chart:
    def __init__(self, values, release="test", chart=None):
        self.root = {
            "Values": values,
            "Chart": {key[0].upper() + key[1:]: value for key, value in (chart or {}).items()},
            "Release": {"Name": release, "Namespace": "default", "Service": "Helm"},
        }
        self.defined = {}

    def load(self, source):
        """Keeps what it defines."""
        self.render(source)

    def render(self, source):
        text, rest = self.block(parse(source), self.root)
        if rest:
            raise TemplateError("an end too many")
        return text

    def block(self, parts, dot):
        """Renders up to the end of the block; the text, and the parts after its end."""
        made = []
        while parts:
            part, parts = parts[0], parts[1:]
            if isinstance(part, str):
                made.append(part)
                continue
            kind, _, rest = part[1].partition(" ")
            if kind == "end":
                return "".join(made), parts or [""]
            if kind == "define":
                inner, parts = self.whole_block(parts)
                self.defined[rest.strip('"')] = inner
            elif kind in ("if", "with"):
                inner, parts = self.whole_block(parts)
                value = self.value(rest, dot)
                if value:
                    made.append(self.block(inner, value if kind == "with" else dot)[0])
            else:
                made.append(text_of(self.value(part[1], dot)))
        return "".join(made), []

    @staticmethod
    def whole_block(parts):
        """The parts of a block that has been opened, and those after its end."""
        depth = 1
        for at, part in enumerate(parts):
            if not isinstance(part, str):
                word = part[1].split(" ")[0]
                depth += word in ("if", "with", "define")
                depth -= word == "end"
            if depth == 0:
                return parts[:at], parts[at + 1:]
        raise TemplateError("a block has no end")

    def value(self, expression, dot):
        words, at = [], 0
        while at < len(expression.rstrip()):
            found = WORD.match(expression, at)
            words.append(found[1])
            at = found.end()
        value, rest = self.pipeline(words, dot)
        if rest:
            raise TemplateError(f"cannot read '{expression}'")
        return value

    def pipeline(self, words, dot):
        value, words = self.command(words, dot)
        while words and words[0] == "|":
            value, words = self.command(words[1:], dot, [value])
        return value, words

    def command(self, words, dot, last=()):
        operands = []
        while words and words[0] not in "|)":
            if words[0] == "(":
                value, rest = self.pipeline(words[1:], dot)
                if not rest or rest[0] != ")":
                    raise TemplateError("a bracket is open")
                operands.append(value)
                words = rest[1:]
            else:
                operands.append(self.operand(words[0], dot, is_first=not operands))
                words = words[1:]
        operands += last
        if operands and callable(operands[0]):
            return operands[0](*operands[1:]), words
        if len(operands) != 1:
            raise TemplateError(f"what is {operands}?")
        return operands[0], words

    def operand(self, word, dot, is_first):
        if word.startswith('"'):
            return word[1:-1].replace('\\"', '"')
        if re.fullmatch(r"-?\d+", word):
            return int(word)
        if word == ".":
            return dot
        if word.startswith("."):
            value = dot
            for name in word[1:].split("."):
                if name not in value:
                    raise TemplateError(f"there is no {word}")
                value = value[name]
            return value
        if is_first and word == "include":
            return lambda name, inner: self.block(self.defined[name], inner)[0]
        if is_first and word in FUNCTIONS:
            return FUNCTIONS[word]
        raise TemplateError(f"'{word}' is not known here")
