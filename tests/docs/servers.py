"""Servers that a test starts, each on a free port of loopback, and stops."""
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import threading
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMFYD = os.environ["COMFYD_BINARY"]
DOUBLE = os.environ["COMFY_DOUBLE"]
DEADLINE_S = 60


def drain(stream):
    for _ in stream:
        pass


@contextlib.contextmanager
def process(command, says, log, environment=None):
    """Yields it, and what follows `says` on the line of standard output that begins with it."""
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", **(environment or {})}
    with log.open("w") as errors, subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment
    ) as started:
        reader = threading.Thread(target=drain, args=[started.stdout])
        try:
            line = next((line for line in started.stdout if line.startswith(says)), None)
            reader.start()
            if line is None:
                raise RuntimeError(f"{command[0]} did not start:\n{log.read_text()}")
            yield started, line[len(says):].split()[0]
        finally:
            started.terminate()
            try:
                started.wait(DEADLINE_S)
            except subprocess.TimeoutExpired:
                started.kill()
            reader.join()


@contextlib.contextmanager
def server(command, says, log):
    """Yields what process() does, without the process."""
    with process(command, says, log) as (_, told):
        yield told


def comfyd(command, scratch, *arguments):
    """`comfyd serve` or `comfyd engine`; yields its URL."""
    data = scratch / f"{command}-data"
    return server(
        [COMFYD, command, "--listen", "127.0.0.1:0", "--data", str(data), *arguments],
        "listening on ",
        scratch / f"{command}.log",
    )


def double(scratch, name, *arguments):
    """A stand-in for a ComfyUI with a GPU; yields its URL."""
    return server([DOUBLE, *arguments], "listening on ", scratch / f"{name}.log")


def files(folder, scratch):
    """Serves a folder; yields the port."""
    command = [sys.executable, "-m", "http.server", "--bind", "127.0.0.1", "--directory", str(folder), "0"]
    return server(command, "Serving HTTP on 127.0.0.1 port ", scratch / "files.log")


def fetch(url):
    with urllib.request.urlopen(url, timeout=DEADLINE_S) as answer:
        return answer.read()


def get(url):
    return json.loads(fetch(url))


def post(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=DEADLINE_S) as answer:
        return json.load(answer)


def wait_until(condition):
    end = time.monotonic() + DEADLINE_S
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError("waited in vain")
        time.sleep(0.05)


def wait_for_workers(url):
    wait_until(lambda: all(worker["status"] == "idle" for worker in get(url + "/admin/v1/workers")["workers"]))
