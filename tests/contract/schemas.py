"""JSON schemas as OpenAPI 3.0 has them: values that fit one, values that nearly do, and what is wrong with a value."""
import copy
import re

DEPTH_MAX = 6
TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
}
# What a client may send by mistake, or on purpose.
STRANGE_TEXTS = [
    "", " ", "0", "null", "-1", "%00", "a\0b", "../../etc/passwd", "..", "/", "a" * 300, "é" * 200, "\u202e\ufeff", "\ud7ff",
    "😀", "' OR 1=1 --", "<script>alert(1)</script>", "${jndi:ldap://x}", "%n%s", "file:///etc/passwd", "http://127.0.0.1:1/x",
    "http://[::1", "asset:nothing", "blake3:00", "data:image/png;base64,!!!!", "1e400", "2026-13-45T99:99:99Z", "x" * 70_000,
]
STRANGE_NUMBERS = [0, -1, 1, 2**31, 2**53 + 1, 2**63 - 1, -(2**63), 2**64, 1e308, -1e308, 0.1, 5e-324]


class Schemas:
    def __init__(self, document):
        self.document = document

    def resolved(self, node):
        while "$ref" in node:
            found = self.document
            for name in node["$ref"].removeprefix("#/").split("/"):
                found = found[name]
            node = found
        return node

    # Values that fit.

    def example(self, random, schema, depth=0):
        schema = self.resolved(schema)
        if "example" in schema and random.random() < 0.3:
            return copy.deepcopy(schema["example"])
        if schema.get("nullable") and random.random() < 0.1:
            return None
        if "enum" in schema:
            return random.choice(schema["enum"])
        for several in ("oneOf", "anyOf"):
            if several in schema:
                return self.example(random, random.choice(schema[several]), depth)
        if "allOf" in schema:
            parts = [self.example(random, part, depth) for part in schema["allOf"]]
            return {name: value for part in parts for name, value in part.items()}
        make = getattr(self, "_" + schema.get("type", "object"))
        return make(random, schema, depth)

    def _object(self, random, schema, depth):
        made = {}
        required = schema.get("required", [])
        for name, member in schema.get("properties", {}).items():
            if name in required or (depth < DEPTH_MAX and random.random() < 0.4):
                made[name] = self.example(random, member, depth + 1)
        more = schema.get("additionalProperties")
        if isinstance(more, dict) and depth < DEPTH_MAX:
            for i in range(random.randrange(3)):
                made[f"more{i}"] = self.example(random, more, depth + 1)
        return made

    def _array(self, random, schema, depth):
        least = schema.get("minItems", 0)
        most = min(schema.get("maxItems", 3), least + 3) if depth < DEPTH_MAX else least
        items = schema.get("items", {"type": "string"})
        return [self.example(random, items, depth + 1) for _ in range(random.randint(least, max(least, most)))]

    def _string(self, random, schema, depth):
        del depth
        by_format = {
            "uuid": "01a1ed67-475d-7024-b101-5a91b7277ca9",
            "date-time": "2026-11-18T06:45:31.101Z",
            "uri": "https://nowhere.invalid/x",
            "binary": "bytes",
        }
        text = by_format.get(schema.get("format")) or random.choice(["a", "name", "sd15.safetensors", "two words", "ünï"])
        return text.ljust(schema.get("minLength", 0), "x")[: schema.get("maxLength")]

    @staticmethod
    def _integer(random, schema, depth):
        del depth
        least = int(schema.get("minimum", 0))
        most = int(schema.get("maximum", least + 100))
        return random.choice([least, most, random.randint(least, most)])

    def _number(self, random, schema, depth):
        return self._integer(random, schema, depth) + random.choice([0, 0.0, 0.5 if "maximum" not in schema else 0])

    @staticmethod
    def _boolean(random, schema, depth):
        del schema, depth
        return random.random() < 0.5

    # Values that nearly do.

    def strange(self, random):
        return random.choice([
            None, True, False, [], {}, [[]], {"": None}, [None], {"a": {"b": {"c": 1}}}, ["1", 0],
            random.choice(STRANGE_TEXTS), random.choice(STRANGE_NUMBERS),
        ])

    def mutated(self, random, value):
        """The same with something in it changed, left out or added."""
        value = copy.deepcopy(value)
        for _ in range(random.randint(1, 3)):
            value = self._mutate(random, value)
        return value

    def _mutate(self, random, value):
        inner = list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
        if not inner or random.random() < 0.1:
            return self.strange(random)
        at = random.choice(inner)
        what = random.random()
        if what < 0.15:
            del value[at]
        elif what < 0.25 and isinstance(value, dict):
            value[random.choice(STRANGE_TEXTS)] = self.strange(random)
        elif what < 0.3 and isinstance(value, list):
            value.extend([value[at]] * random.choice([1, 200]))
        else:
            value[at] = self._mutate(random, value[at])
        return value

    # What is wrong.

    def problem(self, schema, value, where="body"):
        """None: nothing."""
        schema = self.resolved(schema)
        if value is None and schema.get("nullable"):
            return None
        for several, enough in (("oneOf", 1), ("anyOf", 1), ("allOf", len(schema.get("allOf", [])))):
            if several in schema:
                problems = [self.problem(part, value, where) for part in schema[several]]
                if problems.count(None) < enough:
                    return next(problem for problem in problems if problem)
        if "enum" in schema and value not in schema["enum"]:
            return f"{where} is {value!r}, none of {schema['enum']}"
        return self._problem_of_type(schema, value, where) or self._problem_within(schema, value, where)

    @staticmethod
    def _problem_of_type(schema, value, where):
        wanted = schema.get("type")
        if wanted is None:
            return None
        fits = isinstance(value, TYPES[wanted]) and (wanted == "boolean" or not isinstance(value, bool))
        if not fits:
            return f"{where} is {value!r:.200}, which is no {wanted}"
        if wanted in ("integer", "number"):
            if not schema.get("minimum", value) <= value <= schema.get("maximum", value):
                return f"{where} is {value}, beyond its limits"
        if wanted == "string":
            if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)):
                return f"{where} has {len(value)} characters"
            if "pattern" in schema and not re.search(schema["pattern"], value):
                return f"{where} is {value!r}, unlike {schema['pattern']}"
        return None

    def _problem_within(self, schema, value, where):
        if isinstance(value, dict):
            for name in schema.get("required", []):
                if name not in value:
                    return f"{where} has no {name}, only {sorted(value)}"
            known = schema.get("properties", {})
            more = schema.get("additionalProperties", True)
            for name, member in value.items():
                if name not in known and more is False:
                    return f"{where} has {name}, which the document does not know"
                inner = known.get(name, more if isinstance(more, dict) else {})
                problem = self.problem(inner, member, f"{where}.{name}")
                if problem:
                    return problem
        if isinstance(value, list):
            for i, item in enumerate(value):
                problem = self.problem(schema.get("items", {}), item, f"{where}[{i}]")
                if problem:
                    return problem
        return None
