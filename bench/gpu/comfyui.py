"""A small client for ComfyUI's API (which comfyd speaks too), and servers of one's own to measure."""
import http.client
import json
import os
import subprocess
import sys
import time
import urllib.parse
import uuid

POLL_SECONDS = 0.01


class Failed(Exception):
    pass


class Server:
    """One ComfyUI or comfyd. Not for several threads at once."""

    def __init__(self, url):
        self.url = url.rstrip("/")
        parts = urllib.parse.urlsplit(self.url if "//" in self.url else "http://" + self.url)
        self.address = (parts.hostname, parts.port or 80)
        self.connection = None

    def request(self, method, path, body=None, timeout=600):
        data = None if body is None else json.dumps(body)
        for attempt in (0, 1):  # a kept connection may have been closed meanwhile
            if self.connection is None:
                self.connection = http.client.HTTPConnection(*self.address, timeout=timeout)
            try:
                self.connection.request(method, path, data, {"Content-Type": "application/json"})
                answer = self.connection.getresponse()
                return answer.status, answer.read()
            except (http.client.HTTPException, OSError):
                self.connection.close()
                self.connection = None
                if attempt:
                    raise

    def get(self, path):
        status, body = self.request("GET", path)
        if status != 200:
            raise Failed(f"GET {self.url}{path}: {status} {body[:300]!r}")
        return json.loads(body)

    def submit(self, prompt):
        status, body = self.request("POST", "/prompt", {"prompt": prompt, "client_id": uuid.uuid4().hex})
        if status != 200:
            raise Failed(f"POST {self.url}/prompt: {status} {body.decode(errors='replace')[:2000]}")
        return json.loads(body)["prompt_id"]

    def wait(self, prompt_id):
        """The outputs of a prompt, when it is done."""
        while True:
            entry = self.get(f"/history/{prompt_id}").get(prompt_id)
            if entry is not None and entry.get("status", {}).get("completed") is not None:
                if entry["status"].get("status_str") != "success":
                    raise Failed(json.dumps(entry["status"])[:2000])
                return entry["outputs"]
            time.sleep(POLL_SECONDS)

    def run(self, prompt):
        return self.wait(self.submit(prompt))

    def picture(self, image):
        path = "/view?" + urllib.parse.urlencode(image)
        status, body = self.request("GET", path)
        if status != 200:
            raise Failed(f"GET {self.url}{path}: {status}")
        return body

    def classes(self):
        return self.get("/object_info")


class OwnServers:
    """ComfyUI processes that share one GPU, for the time of a measurement."""

    def __init__(self, directory, count, first_port, arguments):
        self.processes = []
        self.servers = []
        self.logs = []
        for i in range(count):
            log = f"comfyui-{first_port + i}.log"
            self.logs.append(log)
            with open(log, "w") as file:
                self.processes.append(subprocess.Popen(
                    [sys.executable, "main.py", "--listen", "127.0.0.1", "--port", str(first_port + i),
                     "--disable-auto-launch", *arguments], cwd=directory, env=os.environ, stdout=file, stderr=file))
            self.servers.append(Server(f"http://127.0.0.1:{first_port + i}"))

    def __enter__(self):
        for process, server, log in zip(self.processes, self.servers, self.logs):
            deadline = time.monotonic() + 300
            while True:
                try:
                    server.get("/system_stats")
                    break
                except (Failed, OSError, ValueError, http.client.HTTPException):
                    if process.poll() is not None or time.monotonic() > deadline:
                        self.__exit__()
                        raise Failed(f"ComfyUI did not start, see {log}")
                    time.sleep(0.2)
        return self.servers

    def __exit__(self, *_):
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
