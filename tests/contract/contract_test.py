"""Every route of /openapi.json, asked in every way: whatever comes, the answer is one that the document knows.

The same requests each time. COMFYD_CONTRACT_SEED=N makes others, COMFYD_CONTRACT_ROUNDS=N more of them, and
COMFYD_CONTRACT_ONLY=operationId asks one route alone."""
import collections
import gzip
import http.client
import itertools
import json
import os
import pathlib
import random
import tempfile
import unittest

import servers
from requests_of import WORKFLOW, Maker, Operation, Request, operations
from schemas import Schemas

SEED = int(os.environ.get("COMFYD_CONTRACT_SEED", "1"))
ROUNDS = int(os.environ.get("COMFYD_CONTRACT_ROUNDS", "8"))
ONLY = os.environ.get("COMFYD_CONTRACT_ONLY")
IS_SANITIZED = os.environ.get("COMFYD_IS_SANITIZED") == "1"
ROUNDS_TO_WARM_UP = 2
GROWTH_MAX_MB = 128
ANSWER_DEADLINE_S = 60
IDS_KEPT = 30
PROBLEMS_SHOWN = 40

KEYS = {"stranger": None, "tenant": "anna-0123456789abcdef", "operator": "boss-0123456789abcdef"}
# Members of answers that paths are made of.
ID_MEMBERS = ("id", "name", "hash", "key", "filename", "prompt_id", "task_id", "execution_id", "version", "label", "endpoint")


class Connection(http.client.HTTPConnection):
    """Sends what it is told to, also what no client should."""

    def _validate_path(self, url):
        pass

    def _encode_request(self, request):
        return request.encode("latin-1")


class Answer:
    def __init__(self, response, body):
        self.status = response.status
        self.kind = (response.getheader("Content-Type") or "").split(";")[0]
        self.body = gzip.decompress(body) if response.getheader("Content-Encoding") == "gzip" and body else body

    def json(self):
        """None: it is none."""
        try:
            return json.loads(self.body) if self.kind == "application/json" else None
        except ValueError:
            return None


class Client:
    def __init__(self, url, key):
        self.address = url.removeprefix("http://")
        self.key = key
        self.connection = None

    def ask(self, request: Request):
        """None: it was refused before it was sent wholly, or the wait was too long."""
        if self.connection is None:
            self.connection = Connection(self.address, timeout=ANSWER_DEADLINE_S)
        try:
            self._send(request)
        except (BrokenPipeError, ConnectionResetError):
            pass  # an answer may be there all the same
        try:
            return self._receive()
        except (ConnectionError, http.client.BadStatusLine):
            self.close()
            return None

    def _send(self, request):
        self.connection.putrequest(request.method, request.target.decode("latin-1"), skip_accept_encoding=True)
        for name, value in request.headers:
            self.connection.putheader(name, value.encode("latin-1", "replace"))
        if self.key:
            self.connection.putheader("Authorization", "Bearer " + self.key)
        if request.body or request.method not in ("GET", "HEAD", "DELETE"):
            self.connection.putheader("Content-Length", str(len(request.body)))
        self.connection.endheaders(request.body)

    def _receive(self):
        response = self.connection.getresponse()
        is_stream = response.status == 101 or (response.getheader("Content-Type") or "").startswith("text/event-stream")
        answer = Answer(response, b"" if is_stream else response.read())
        if is_stream or response.will_close:
            self.close()
        return answer

    def close(self):
        if self.connection:
            self.connection.close()
        self.connection = None


class Judge:
    """Whether an answer is one that the document knows."""

    def __init__(self, schemas):
        self.schemas = schemas

    def problem(self, caller, operation: Operation, request: Request, answer: Answer):
        responses = operation.document["responses"]
        status = str(answer.status)
        if answer.status >= 500 and status not in responses:
            return f"{status} is not in the document"
        if not request.is_routed:
            return None
        if answer.status < 400 and status not in responses:
            return f"{status} is not in the document"
        if answer.status < 400 and self._is_beyond(caller, operation):
            return f"{status} for a {caller}"
        return self._problem_of_body(responses.get(status) or responses["default"], request, answer)

    @staticmethod
    def _is_beyond(caller, operation):
        return caller == "stranger" and operation.needs_key or caller == "tenant" and operation.needs_operator

    def _problem_of_body(self, response, request, answer):
        contents = self.schemas.resolved(response).get("content")
        if request.method == "HEAD" or answer.status in (101, 204, 304) or not contents:
            return f"{answer.status} has a body: {answer.body[:200]!r}" if request.method == "HEAD" and answer.body else None
        if answer.kind not in contents and "*/*" not in contents:
            return f"{answer.status} is {answer.kind or 'without a type'}, none of {sorted(contents)}"
        content = contents.get(answer.kind)
        if answer.kind != "application/json" or content is None:
            return None
        problem = self.schemas.problem(content.get("schema", {}), answer.json())
        return problem and f"{answer.status}: {problem}"


class Contract(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = pathlib.Path(scratch.name)
        self.ids = collections.defaultdict(lambda: collections.deque(maxlen=IDS_KEPT))
        self.problems = {}
        self.asked = self.answered = 0

    def test_every_answer_is_in_the_document(self):
        environment = {
            "COMFYD_AUTH_KEYS": ",".join(f"{name}={KEYS[who]}" for name, who in (("anna", "tenant"), ("boss", "operator"))),
            "COMFYD_AUTH_OPERATORS": "boss",
        }
        with servers.double(self.scratch, "worker") as worker:
            command = [
                servers.COMFYD, "serve", "--listen", "127.0.0.1:0", "--data", str(self.scratch / "data"), "--no-engine",
                "--worker", worker, "--set", "fleet.poll_ms=100", "--set", "shutdown_grace_s=0", "--log-level", "warning",
            ]
            log = self.scratch / "comfyd.log"
            with servers.process(command, "listening on ", log, environment) as (process, url):
                self.clients = {who: Client(url, key) for who, key in KEYS.items()}
                servers.wait_until(self.has_worker)
                document = self.get("operator", "/openapi.json")
                self.ask_everything(document, process.pid)
                self.expect_still_at_work()
                for client in self.clients.values():
                    client.close()
            # Sanitizers tell of leaks at the end.
            self.assertEqual(process.returncode, 0, log.read_text()[-5000:])
            self.assertNotIn("a request handler failed", log.read_text())

    def get(self, who, path):
        request = Request("GET", path.encode(), [])
        answer = self.clients[who].ask(request) or self.clients[who].ask(request)  # the server ends idle connections
        return answer.json()

    def has_worker(self):
        return any(worker["status"] == "idle" for worker in self.get("operator", "/admin/v1/workers")["workers"])

    def ask_everything(self, document, pid):
        judge = Judge(Schemas(document))
        every = [one for one in operations(document) if ONLY in (None, one.name)]
        self.assertTrue(every)
        print(f"{len(every)} operations, {ROUNDS} rounds, COMFYD_CONTRACT_SEED={SEED}")
        warm_mb = None
        for turn in range(ROUNDS):
            for operation, (who, client) in itertools.product(every, self.clients.items()):
                chance = random.Random(f"{SEED} {turn} {operation.name} {who}")
                request = Maker(judge.schemas, chance, self.known_ids).make(operation)
                self.ask(judge, client, who, operation, request)
            if turn + 1 == ROUNDS_TO_WARM_UP:
                warm_mb = resident_mb(pid)
        grown_mb = resident_mb(pid) - (warm_mb or 0)
        print(f"{self.asked} requests, {self.answered} answers; grown by {grown_mb:.0f} MB")
        for problem, seen in itertools.islice(self.problems.items(), PROBLEMS_SHOWN):
            print(f"\n{problem}\n{seen}")
        self.assertEqual(len(self.problems), 0, "answers that the document does not know are above")
        if warm_mb and not IS_SANITIZED:
            self.assertLess(grown_mb, GROWTH_MAX_MB)

    def ask(self, judge, client, who, operation, request):
        self.asked += 1
        try:
            answer = client.ask(request)
        except (TimeoutError, http.client.IncompleteRead) as error:
            client.close()
            if not operation.may_wait_or_end_early:
                self.problems[f"{operation.name} as {who}: {type(error).__name__}"] = str(request)
            return
        if answer is None:
            return
        self.answered += 1
        problem = judge.problem(who, operation, request, answer)
        if problem:
            seen = f"{request}\n=> {answer.status} {answer.kind} {answer.body[:600]!r}"
            self.problems.setdefault(f"{operation.name} as {who}: {problem}", seen)
        if answer.status < 300:
            self.remember_ids(operation, answer.json())
        if operation.path.endswith("/drain"):
            self.resume_workers()

    # Paths are made of what answers have told of before.

    @staticmethod
    def family(operation):
        return operation.path.split("{")[0].strip("/")

    def known_ids(self, operation):
        return [*self.ids[self.family(operation)], *self.ids["all"]]

    def remember_ids(self, operation, value):
        if isinstance(value, dict):
            for name, member in value.items():
                if name in ID_MEMBERS and isinstance(member, (str, int)) and str(member):
                    self.ids[self.family(operation)].append(str(member)[:300])
                    self.ids["all"].append(str(member)[:300])
                else:
                    self.remember_ids(operation, member)
        elif isinstance(value, list):
            for member in value[:IDS_KEPT]:
                self.remember_ids(operation, member)

    def resume_workers(self):
        """What waits for a job would wait long."""
        for worker in self.get("operator", "/admin/v1/workers")["workers"]:
            self.clients["operator"].ask(Request("POST", f"/admin/v1/workers/{worker['id']}/resume".encode(), []))

    def expect_still_at_work(self):
        headers = [("Content-Type", "application/json")]
        body = json.dumps({"workflow": WORKFLOW}).encode()
        made = self.clients["tenant"].ask(Request("POST", b"/api/v2/jobs", headers, body))
        self.assertEqual(made.status, 201, made.body)
        job = "/api/v2/jobs/" + made.json()["id"]
        servers.wait_until(lambda: self.get("tenant", job)["status"] == "succeeded")


def resident_mb(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


if __name__ == "__main__":
    unittest.main()
