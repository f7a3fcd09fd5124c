"""deploy/compose: its nodes, with the commands and the environment that stand there, are one service over a real
PostgreSQL and a real Redis, and behind its proxy where HAProxy is installed. Host names become loopback, ports free ones."""
import contextlib
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile
import unittest
import urllib.error
import urllib.request

import yaml

import servers
import stores
from page import blocks_of
from servers import ROOT

FOLDER = ROOT / "deploy/compose"
COMPOSE = yaml.safe_load((FOLDER / "compose.yaml").read_text())
NODES = ("node1", "node2", "node3")
VARIABLE = re.compile(r"\$\$|\$\{(\w+)(?::([-?])([^}]*))?\}")
FLOW = {
    "1": {"class_type": "EmptyLatentImage", "inputs": {"width": 64, "height": 64, "batch_size": 1}},
    "2": {"class_type": "VAEDecode", "inputs": {"samples": ["1", 0], "vae": ["3", 2]}},
    "3": {"class_type": "CheckpointLoaderSimple", "inputs": {"ckpt_name": "sd15.safetensors"}},
    "4": {"class_type": "SaveImage", "inputs": {"images": ["2", 0], "filename_prefix": "compose"}},
}


class Missing(Exception):
    """A variable that has to be set and is not."""


def interpolate(value, variables):
    """As Compose does it."""
    if isinstance(value, dict):
        return {key: interpolate(inner, variables) for key, inner in value.items()}
    if isinstance(value, list):
        return [interpolate(inner, variables) for inner in value]
    if not isinstance(value, str):
        return value

    def put(found):
        name, kind, text = found.groups()
        if found[0] == "$$":
            return "$"
        if variables.get(name):
            return variables[name]
        if kind == "?":
            raise Missing(name)
        return text or ""

    return VARIABLE.sub(put, value)


def secrets_of_readme(folder):
    """Runs the block that makes .env; its variables."""
    block = next(block for block in blocks_of(FOLDER / "README.md") if "cat > .env" in block.text)
    subprocess.run(["bash", "-euo", "pipefail", "-c", block.text], cwd=folder, check=True)
    lines = (folder / ".env").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines)


class Secrets(unittest.TestCase):
    def test_are_made_by_the_readme_for_their_owner_alone(self):
        with tempfile.TemporaryDirectory() as folder:
            variables = secrets_of_readme(pathlib.Path(folder))
            self.assertEqual((pathlib.Path(folder) / ".env").stat().st_mode & 0o077, 0)
        interpolate(COMPOSE, variables)

    def test_have_no_default(self):
        with tempfile.TemporaryDirectory() as folder:
            variables = secrets_of_readme(pathlib.Path(folder))
        for name in ("POSTGRES_PASSWORD", "REDIS_PASSWORD", "COMFYD_CLUSTER_SECRET", "COMFYD_AUTH_KEYS"):
            with self.subTest(name), self.assertRaises(Missing):
                interpolate(COMPOSE, {**variables, name: ""})


class Nodes(unittest.TestCase):
    def test_differ_in_their_name_alone(self):
        first, *others = (dict(COMPOSE["services"][name]) for name in NODES)
        first.pop("build")
        for node in others:
            self.assertEqual({key: node[key] for key in node if key != "environment"},
                             {key: first[key] for key in first if key != "environment"})
            names = {key for key in node["environment"] if node["environment"][key] != first["environment"][key]}
            self.assertEqual(names, {"COMFYD_CLUSTER_NODE"})

    def test_are_those_of_the_proxy(self):
        servers_of_proxy = re.findall(r"^ *server (\w+) \1:8080$", (FOLDER / "haproxy.cfg").read_text(), re.M)
        self.assertEqual(tuple(servers_of_proxy), NODES * 2, "those that are ready, those that are alive")


class Running(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.stack = contextlib.ExitStack()
        cls.addClassCleanup(cls.stack.close)
        cls.scratch = pathlib.Path(cls.stack.enter_context(tempfile.TemporaryDirectory()))
        worker = cls.stack.enter_context(servers.double(cls.scratch, "gpu"))
        variables = {**secrets_of_readme(cls.scratch), "COMFYD_WORKERS": worker}
        keys = dict(pair.split("=") for pair in variables["COMFYD_AUTH_KEYS"].split(","))
        cls.app, cls.operator = keys["app"], keys["ops"]
        services = interpolate(COMPOSE["services"], variables)
        database = services["postgres"]["environment"]
        port = cls.stack.enter_context(stores.postgres(
            cls.scratch, database["POSTGRES_USER"], database["POSTGRES_PASSWORD"], database["POSTGRES_DB"],
            shlex.split(database["POSTGRES_INITDB_ARGS"])))
        hints = services["redis"]
        command = [word.replace("redis-server", "redis-server --port {port} --bind 127.0.0.1 --dir {dir}")
                   for word in hints["command"]]
        hints_port = cls.stack.enter_context(stores.redis(cls.scratch, command, hints["environment"]))
        here = {"@postgres/": f"@127.0.0.1:{port}/", "@redis:6379": f"@127.0.0.1:{hints_port}",
                "0.0.0.0:8080": "127.0.0.1:0", "/srv/comfyd": str(cls.scratch / "files")}
        cls.services, cls.here = services, here
        cls.nodes = {}
        cls.stops = {}
        for name in NODES:
            cls.nodes[name] = cls.start(name)
        servers.wait_until(lambda: all(cls.knows_workers(url) for url in cls.nodes.values()))

    @classmethod
    def start(cls, name):
        service = cls.services[name]
        environment = {"COMFYD_DATA": str(cls.scratch / name), "COMFYD_FLEET_POLL_MS": "100"}
        for key, value in service["environment"].items():
            for there, address in cls.here.items():
                value = value.replace(there, address)
            environment[key] = value
        command = ["env", *(f"{key}={value}" for key, value in environment.items()), servers.COMFYD, *service["command"]]
        own = contextlib.ExitStack()
        cls.stack.enter_context(own)
        cls.stops[name] = own.close
        return own.enter_context(servers.server(command, "listening on ", cls.scratch / f"{name}.log"))

    @classmethod
    def ask(cls, url, body=None, key=None, **headers):
        request = urllib.request.Request(url, None if body is None else json.dumps(body).encode(),
                                         {"Authorization": f"Bearer {key or cls.app}", **headers})
        with urllib.request.urlopen(request, timeout=servers.DEADLINE_S) as answer:
            return json.load(answer)

    @classmethod
    def knows_workers(cls, url):
        return "SaveImage" in cls.ask(url + "/object_info/SaveImage")

    def run_job(self, accepting, reading):
        job = self.ask(accepting + "/api/v2/jobs", {"workflow": FLOW})["id"]
        last = {}

        def ended():
            last.update(self.ask(f"{reading}/api/v2/jobs/{job}"))
            return last["completed_at"] is not None

        servers.wait_until(ended)
        self.assertEqual(last["status"], "succeeded", last)
        return job

    def test_a_job_of_one_node_is_read_from_another(self):
        self.run_job(self.nodes["node1"], self.nodes["node3"])
        self.run_job(self.nodes["node3"], self.nodes["node2"])

    def test_they_are_one_service_with_one_leader(self):
        told = [self.ask(url + "/admin/v1/cluster", key=self.operator) for url in self.nodes.values()]
        self.assertEqual(len({one["node"]["id"] for one in told}), 3)
        self.assertTrue(all(one["bus"]["up"] for one in told), told)

    def test_a_stranger_is_refused(self):
        with self.assertRaises(urllib.error.HTTPError) as refused:
            self.ask(self.nodes["node1"] + "/api/v2/jobs", key="guessed")
        self.assertEqual(refused.exception.code, 401)

    @unittest.skipUnless(shutil.which("haproxy") or os.path.exists("/usr/sbin/haproxy"), "HAProxy is not installed")
    def test_the_proxy_asks_another_node_when_one_stops(self):
        port = stores.free_port()
        text = (FOLDER / "haproxy.cfg").read_text().replace("bind :8080", f"bind 127.0.0.1:{port}")
        for name, url in self.nodes.items():
            text = text.replace(f"{name}:8080", url.removeprefix("http://"))
        file = self.scratch / "haproxy.cfg"
        file.write_text(text)
        haproxy = shutil.which("haproxy") or "/usr/sbin/haproxy"
        log = self.scratch / "haproxy.log"
        with stores.running([haproxy, "-W", "-db", "-f", str(file)], log) as process:
            stores.listens(process, log, port)
            proxy = f"http://127.0.0.1:{port}"
            servers.wait_until(lambda: self.is_ready(proxy))
            job = self.run_job(proxy, proxy)
            request = urllib.request.Request(f"{proxy}/v2/workflows/execution/{job}/events",
                                             headers={"Authorization": f"Bearer {self.app}"})
            with urllib.request.urlopen(request, timeout=servers.DEADLINE_S) as stream:
                self.assertIn(b"completed", stream.read())
            self.stops["node2"]()
            self.addCleanup(lambda: self.nodes.update(node2=self.start("node2")))
            for _ in range(20):
                self.ask(f"{proxy}/api/v2/jobs/{job}")
            self.run_job(proxy, proxy)

    def is_ready(self, url):
        try:
            return self.ask(url + "/readyz") is not None
        except urllib.error.HTTPError:
            return False


if __name__ == "__main__":
    unittest.main()
