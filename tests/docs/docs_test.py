"""Runs every command and example of one page against real servers: docs_test.py PAGE

Addresses of the pages become those of the servers of this test: localhost:8080 is a comfyd with two workers and an
engine, 127.0.0.1:8188 a `comfyd engine`, gpu1, gpu2 … stand-ins for ComfyUI, https://example.com a folder of files.
Commands run in a folder that has what the pages speak of: flow.json, cat.png, saved.png, the examples.
"""
import contextlib
import json
import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

import servers
from page import blocks_of, matches
from servers import ROOT

PAGE = ROOT / sys.argv.pop(1)
FLOW = {
    "1": {"class_type": "LoadImage", "inputs": {"image": "cat.png"}, "_meta": {"title": "image"}},
    "2": {"class_type": "ImageInvert", "inputs": {"image": ["1", 0]}},
    "3": {"class_type": "SaveImage", "inputs": {"images": ["2", 0], "filename_prefix": "flow"}},
}
PICTURE = {
    "1": {"class_type": "EmptyImage", "inputs": {"width": 48, "height": 32, "batch_size": 1, "color": 12345}},
    "2": {"class_type": "SeedNode", "inputs": {"seed": 1}, "_meta": {"title": "seed"}},
    "3": {"class_type": "ImageAddNoise", "inputs": {"image": ["1", 0], "seed": ["2", 0], "strength": 0.5}},
    "4": {"class_type": "PrimitiveString", "inputs": {"value": "cat"}, "_meta": {"title": "prompt"}},
    "5": {"class_type": "TextOverlay", "inputs": {"images": ["3", 0], "text": ["4", 0], "font_size": 20, "color": "#ffffff",
                                                  "position": "top", "align": "left", "outline": True}},
    "6": {"class_type": "SaveImage", "inputs": {"images": ["5", 0], "filename_prefix": "cat"}},
}
# A server is told another port and folder, and is asked to stop once it listens.
COMFYD_WRAPPER = r"""#!/usr/bin/env bash
case "${1:-}" in serve | engine) ;; *) exec "$COMFYD_BINARY" "$@" ;; esac
arguments=("$1")
shift
while [ $# -gt 0 ]; do
    case "$1" in --listen | --data) shift 2 ;; *) arguments+=("$1"); shift ;; esac
done
folder=$(mktemp -d -p "$SCRATCH")
"$COMFYD_BINARY" "${arguments[@]}" --listen 127.0.0.1:0 --data "$folder/data" >"$folder/out" 2>"$folder/log" &
until grep -q '^listening on' "$folder/out"; do
    kill -0 $! 2>/dev/null || { cat "$folder/log" >&2; exit 1; }
    sleep 0.05
done
kill $!
wait $!
"""
CURL_WRAPPER = '#!/usr/bin/env bash\nexec "$REAL_CURL" --fail-with-body --show-error "$@"\n'
MAKE_WRAPPER = '#!/usr/bin/env bash\nexec "$REAL_MAKE" --dry-run -C "$SOURCE" "$@" >/dev/null\n'


class World:
    """The servers and the folder, for as long as `stack` is open."""

    def __init__(self, stack):
        self.scratch = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        self.folder = self.scratch / "work"
        self.folder.mkdir()
        gpus = [stack.enter_context(servers.double(self.scratch, f"gpu{i}", "--batch-pack")) for i in (1, 2)]
        self.engine = stack.enter_context(servers.comfyd("engine", self.scratch))
        config = self.scratch / "comfyd.yaml"
        config.write_text(
            f'workers:\n  - {{url: "{gpus[0]}"}}\n  - {{url: "{gpus[1]}", pool: gold}}\nengine: {{pool: gold}}\n'
            "inputs: {allow_private: true}\nfleet: {poll_ms: 100}\n"
        )
        self.url = stack.enter_context(servers.comfyd("serve", self.scratch, "--config", str(config)))
        servers.wait_for_workers(self.url)
        self.job = self.make_files()
        files = stack.enter_context(servers.files(self.folder, self.scratch))
        self.addresses = {
            "https://example.com": f"http://127.0.0.1:{files}",
            "/path/to/": f"{self.scratch}/path-to/",
            **{f"{host}:8080": self.url.removeprefix("http://") for host in ("localhost", "127.0.0.1")},
            **{f"{host}:8188": self.engine.removeprefix("http://") for host in ("localhost", "127.0.0.1")},
            **{f"http://gpu{i}:8188": gpus[i % 2] for i in range(1, 5)},
        }
        self.environment = {
            **os.environ,
            "PATH": f"{self.scratch}/bin:{os.environ['PATH']}",
            "SCRATCH": str(self.scratch),
            "SOURCE": str(ROOT),
            "REAL_CURL": shutil.which("curl"),
            "REAL_MAKE": shutil.which("make"),
            "COMFYD_URL": self.url,
            "ID": self.job,
            "KEY": "not needed here",
        }

    def make_files(self):
        """What the pages speak of. Returns the id of a job that has run."""
        (self.folder / "flow.json").write_text(json.dumps(FLOW))
        for link in ("examples", "worker", "scripts"):
            (self.folder / link).symlink_to(ROOT / link)
        (self.folder / "comfyd-data").symlink_to(self.scratch / "serve-data")
        for name in ("ComfyUI/custom_nodes", "comfyui_frontend_package/static"):
            (self.scratch / "path-to" / name).mkdir(parents=True)
        (self.scratch / "path-to/comfyui_frontend_package/static/index.html").write_text("editor")
        for name, text in {"comfyd": COMFYD_WRAPPER, "curl": CURL_WRAPPER, "make": MAKE_WRAPPER}.items():
            program = self.scratch / "bin" / name
            program.parent.mkdir(exist_ok=True)
            program.write_text(text)
            program.chmod(program.stat().st_mode | stat.S_IXUSR)
        (self.folder / "build/release").mkdir(parents=True)
        (self.folder / "build/release/comfyd").symlink_to(self.scratch / "bin/comfyd")
        ran = servers.post(self.url + "/v2/workflows/execute?wait=60", {"workflow": PICTURE, "pool": "gold"})
        saved = servers.get(f"{self.url}/api/v2/jobs/{ran['execution_id']}")["outputs"][0]["url"]
        picture = servers.fetch(saved if saved.startswith("http") else self.url + saved)
        (self.folder / "cat.png").write_bytes(picture)
        (self.folder / "saved.png").write_bytes(picture)
        return ran["execution_id"]

    def here(self, text):
        for there, address in self.addresses.items():
            text = text.replace(there, address)
        return text

    def run(self, commands):
        return subprocess.run(
            ["bash", "-euo", "pipefail", "-c", self.here(commands)],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=servers.DEADLINE_S,
        )


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.stack = contextlib.ExitStack()
        cls.addClassCleanup(cls.stack.close)
        cls.world = World(cls.stack)

    def expect_success(self, ran):
        self.assertEqual(ran.returncode, 0, f"\n{ran.args[-1]}\n{ran.stdout}{ran.stderr}")

    def check(self, block):
        if block.kind == "sh":
            self.expect_success(self.world.run(block.text))
        elif block.kind == "console":
            for command, printed in block.commands():
                ran = self.world.run(command)
                self.expect_success(ran)
                if not block.varies:
                    self.assertTrue(matches(printed, ran.stdout), f"the page says\n{printed}\nit is\n{ran.stdout}")
        elif block.kind == "yaml":
            file = self.world.scratch / "page.yaml"
            file.write_text(block.text)
            self.expect_success(self.world.run(f"comfyd config --config {file}"))
        elif block.kind == "json":
            json.loads(block.text)
        elif block.kind == "jsonl":
            for line in block.text.splitlines():
                json.loads(line)

    def test_everything_on_it_runs(self):
        for block in blocks_of(PAGE):
            with self.subTest(f"{PAGE.name}:{block.line}"):
                if block.runs:
                    self.check(block)

    def test_its_links_lead_somewhere(self):
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", PAGE.read_text()):
            self.assertTrue((PAGE.parent / target).exists(), target)

    @unittest.skipUnless(PAGE.name == "README.md", "the list of routes is in the README")
    def test_the_routes_it_names_are_documented(self):
        documented = servers.get(self.world.url + "/openapi.json")["paths"]
        spoken = re.search(r"## What it speaks\n(.*?)\n## ", PAGE.read_text(), re.S)
        for route in re.findall(r"`(?:GET |PUT |POST )?(/[^` ]*)`", spoken[1] if spoken else ""):
            if route not in ("/docs", "/api", "/ui/"):
                start = route.rstrip("…")
                self.assertTrue(any(path.startswith(start) for path in documented), route)


if __name__ == "__main__":
    unittest.main()
