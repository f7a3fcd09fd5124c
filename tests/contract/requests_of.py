"""Requests to one operation of an OpenAPI document: such as fit it, such as nearly do, and such as no client should send."""
import dataclasses
import json
import urllib.parse

from schemas import STRANGE_TEXTS, Schemas

# Runs in no time on a stand-in for ComfyUI.
WORKFLOW = {
    "1": {"class_type": "EmptyImage", "inputs": {"width": 16, "height": 16, "batch_size": 1, "color": 0}},
    "2": {"class_type": "SaveImage", "inputs": {"filename_prefix": "contract", "images": ["1", 0]}},
}
WORKFLOW_MEMBERS = ("workflow", "prompt", "payload")
# Of time that a request may wait for: as little of it as is allowed.
PATIENCE = ("wait", "timeout")
HUGE_BYTES = 48 << 20
STRANGE_SEGMENTS = [
    b"..", b"%2e%2e%2f%2e%2e", b"%ff%fe", b"%zz", b"%", b"%00", b"a%20b", b"%F0%9F%98%80", b"\xff\xfe", b"*", b"0", b"-1",
    b"x" * 4000, b"00000000-0000-0000-0000-000000000000", b"{id}", b"a;b=c", b"a%2Fb", b"%0d%0aX:%20y",
]
STRANGE_HEADERS = [
    ("Range", "bytes=0-"), ("Range", "bytes=5-1"), ("Range", "bytes=-0,1-2,,"), ("If-None-Match", "*"), ("If-Match", '"x"'),
    ("If-Modified-Since", "yesterday"), ("Accept", "text/event-stream"), ("Accept-Encoding", "gzip;q=nan"),
    ("Content-Encoding", "gzip"), ("Expect", "200-ok"), ("X-Forwarded-For", "::1, , 1.2.3.4"), ("Cookie", "a=b; a"),
    ("Last-Event-ID", "99999999999999999999"), ("X-HTTP-Method-Override", "DELETE"), ("Idempotency-Key", "k" * 300),
    ("traceparent", "00-zz-zz-ff"), ("X-Comfyd-Pool", "\xe9"), ("Comfy-Api-Version", "0"), ("X-Big", "h" * 7000),
]
STRANGE_TYPES = [
    "", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "multipart/form-data; boundary=",
    "application/json; charset=utf-16", "application/xml", "/", "application/json, text/plain", "image/png",
]


@dataclasses.dataclass
class Operation:
    method: str
    path: str
    document: dict

    @property
    def name(self):
        return self.document.get("operationId", f"{self.method} {self.path}")

    @property
    def parameters(self):
        return self.document.get("parameters", [])

    @property
    def needs_key(self):
        return {} not in self.document["security"] and bool(self.document["security"])

    @property
    def needs_operator(self):
        return self.document.get("x-needs-operator", False)

    @property
    def may_wait_or_end_early(self):
        """For the end of a job; or as an archive does of which a file was deleted."""
        success = self.document["responses"].get("200", {}).get("content", {})
        return any(parameter["name"] in PATIENCE for parameter in self.parameters) or "application/zip" in success


@dataclasses.dataclass
class Request:
    method: str
    target: bytes
    headers: list
    body: bytes = b""
    is_routed: bool = True  # the path leads to the operation

    def __str__(self):
        lines = [f"{self.method} {self.target[:1000]!r}", *(f"{name}: {value[:200]}" for name, value in self.headers)]
        return "\n".join([*lines, "", repr(self.body[:2000]) + f" ({len(self.body)} bytes)"])


def operations(document):
    methods = ("get", "put", "post", "delete", "patch", "head", "options")
    return [
        Operation(method.upper(), path, operation)
        for path, by_method in document["paths"].items()
        for method, operation in by_method.items()
        if method in methods
    ]


class Maker:
    """Of requests, by chance."""

    def __init__(self, schemas: Schemas, random, known_ids):
        self.schemas = schemas
        self.random = random
        self.known_ids = known_ids

    def make(self, operation):
        way = self.random.choice(["fits", "fits", "nearly", "nearly", "hostile"])
        request = Request(operation.method, b"", [])
        request.target = self._path(request, operation, way) + self._query(operation, way)
        self._add_headers(request, operation, way)
        self._add_body(request, operation, way)
        return request

    def _chance(self, of):
        return self.random.random() < of

    def _path(self, request, operation, way):
        segments = []
        for segment in operation.path.split("/"):
            if not segment.startswith("{"):
                segments.append(segment.encode())
            elif way == "hostile" and self._chance(0.5):
                request.is_routed = False
                segments.append(self.random.choice(STRANGE_SEGMENTS))
            else:
                known = self.known_ids(operation)
                text = self.random.choice(known) if known else "nothing"
                segments.append(urllib.parse.quote(text, safe="").encode() or b"nothing")
        return b"/".join(segments)

    def _value(self, parameter, way):
        schema = self.schemas.resolved(parameter.get("schema", {"type": "string"}))
        if parameter["name"] in PATIENCE and "minimum" in schema:
            return schema["minimum"]
        if way == "fits" or self._chance(0.4):
            return self.schemas.example(self.random, schema)
        return self.schemas.strange(self.random)

    def _query(self, operation, way):
        pairs = []
        for parameter in operation.parameters:
            if parameter["in"] == "query" and (parameter.get("required") or self._chance(0.5)):
                value = self._value(parameter, way)
                pairs.append((parameter["name"], value if isinstance(value, str) else json.dumps(value)))
        if way == "hostile":
            pairs += self.random.sample(pairs, min(len(pairs), 1))
            pairs.append((self.random.choice(STRANGE_TEXTS)[:500], "x"))
        if not pairs:
            return b""
        text = "?" + urllib.parse.urlencode([(name, value[:3000]) for name, value in pairs])
        if way == "hostile" and self._chance(0.3):
            return text.encode() + self.random.choice([b"&&&==", b"&%zz=%", b"&a=\xff", b"?x", b"#f", b"&" * 2000])
        return text.encode()

    def _add_headers(self, request, operation, way):
        for parameter in operation.parameters:
            if parameter["in"] == "header" and self._chance(0.3):
                text = str(self._value(parameter, way))[:3000]
                # What no header can be.
                request.headers.append((parameter["name"], "".join(c for c in text if " " < c < "\x7f")))
        if way == "hostile":
            request.headers += self.random.sample(STRANGE_HEADERS, 2)
            # Answered before anybody looks where it leads.
            request.is_routed &= not any(name == "Expect" for name, _ in request.headers)
        if "101" in operation.document["responses"] and self._chance(0.5):
            request.headers += [
                ("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13"),
                ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
            ]

    def _add_body(self, request, operation, way):
        contents = operation.document.get("requestBody", {}).get("content", {})
        if not contents:
            if way == "hostile" and self._chance(0.5):
                request.body = self._no_json(b"{}")
                request.headers.append(("Content-Type", self.random.choice(STRANGE_TYPES)))
            return
        kind = self.random.choice(list(contents))
        value = self.schemas.example(self.random, contents[kind].get("schema", {}))
        self._fill(value)
        if way != "fits":
            value = self.schemas.mutated(self.random, value)
        if kind == "multipart/form-data":
            kind, request.body = self._form(value)
        elif kind == "application/json":
            request.body = json.dumps(value, ensure_ascii=self._chance(0.5)).encode("utf-8", "surrogatepass")
        else:
            request.body = str(value).encode("utf-8", "surrogatepass")
        if way == "hostile":
            request.body = self._no_json(request.body)
            if self._chance(0.3):
                kind = self.random.choice(STRANGE_TYPES)
        if kind:
            request.headers.append(("Content-Type", kind))

    def _fill(self, value):
        """Workflows that can run, where one is wanted."""
        if isinstance(value, dict):
            for name, member in value.items():
                if name in WORKFLOW_MEMBERS and isinstance(member, dict) and self._chance(0.8):
                    value[name] = json.loads(json.dumps(WORKFLOW))
                    value[name]["1"]["inputs"]["color"] = self.random.randrange(1 << 24)
                elif name in PATIENCE and isinstance(member, (int, float)):
                    value[name] = 1
                else:
                    self._fill(member)
        elif isinstance(value, list):
            for member in value:
                self._fill(member)

    def _form(self, value):
        lines = []
        for name, member in value.items() if isinstance(value, dict) else [("file", value)]:
            file = '; filename="a.png"' if name in ("file", "image") or self._chance(0.1) else ""
            text = member if isinstance(member, str) else json.dumps(member)
            quoted = name[:200].replace('"', "%22").replace("\n", "")
            lines.append(f'--edge\r\nContent-Disposition: form-data; name="{quoted}"{file}\r\n\r\n{text}\r\n')
        lines.append("--edge--\r\n")
        return "multipart/form-data; boundary=edge", "".join(lines).encode("utf-8", "surrogatepass")

    def _no_json(self, body):
        """What a decoder has to refuse, or may take."""
        at = self.random.randrange(len(body) + 1)
        ways = [
            lambda: body[:at],
            lambda: body[:at] + bytes([self.random.randrange(256)]) + body[at:],
            lambda: b"\xef\xbb\xbf" + body,
            lambda: body.decode("utf-8", "replace").encode("utf-16"),
            lambda: body + body,
            lambda: b"",
            lambda: b"\0" * 64,
            lambda: b"[" * 100_000,
            lambda: b'{"a":' * 5_000 + b"1" + b"}" * 5_000,
            lambda: b'{"workflow": 1, "workflow": {}, "prompt": [], "a": 1e400}',
            lambda: b'{"' + b"k" * 200_000 + b'": null}',
            lambda: b"[" + b"0," * 50_000 + b"0]",
            lambda: b'"\\ud800"',
            lambda: b"NaN",
            lambda: b" " * HUGE_BYTES if self._chance(0.1) else b" " * 5_000,
        ]
        return self.random.choice(ways)()
