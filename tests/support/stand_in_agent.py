#!/usr/bin/env python3
"""Stands in for `comfyd worker` where only its place matters: takes its flags, says in its folder that it is there,
answers /healthz and /worker/v1/status, and has a child in the place of ComfyUI. STAND_IN in its environment makes it
misbehave; what it was told lies in told.json, the numbers of its children in children.json."""
import http.server
import json
import os
import signal
import socket
import socketserver
import subprocess
import sys
import threading


def option(name):
    flags = sys.argv[1:sys.argv.index("--")] if "--" in sys.argv else sys.argv[1:]
    return flags[flags.index(name) + 1] if name in flags else None


FOLDER = option("--folder")
MANNERS = os.environ.get("STAND_IN", "").split(",")
TOKEN = os.environ.get("COMFYD_WORKER_TOKEN", "")
BUSY = "import time\nwhile True: time.sleep(600)"


def write(name, value):
    with open(os.path.join(FOLDER, name + ".new"), "w") as file:
        json.dump(value, file)
    os.rename(os.path.join(FOLDER, name + ".new"), os.path.join(FOLDER, name))


def sleeper(**how):
    return subprocess.Popen([sys.executable, "-c", BUSY, "of", FOLDER], **how).pid


def children():
    # As ComfyUI: a group of its own, and of the environment what is not comfyd's.
    clean = {name: value for name, value in os.environ.items() if not name.startswith("COMFYD_")}
    pids = {"comfyui": sleeper(env=clean, preexec_fn=os.setpgrp)}
    if "strays" in MANNERS:
        pids["other_session"] = sleeper(env=clean, start_new_session=True)
        pids["empty_environment"] = sleeper(env={})
        orphan = ("import os, subprocess, sys\n"
                  "pid = subprocess.Popen([sys.executable, '-c', sys.argv[1]], start_new_session=True,\n"
                  "                       stdout=subprocess.DEVNULL).pid\n"
                  "print(pid)")
        pids["orphan"] = int(subprocess.check_output([sys.executable, "-c", orphan, BUSY], env=clean))
    return pids


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/healthz":
            self.answer(200, {"status": "ok"})
        elif self.headers.get("Authorization") != "Bearer " + TOKEN:
            self.answer(401, {"error": "unauthorized"})
        elif self.path == "/worker/v1/status":
            self.answer(200, {"instance": os.environ["COMFYD_INSTANCE"], "state": "ready"})
        else:
            self.answer(404, {"error": "not_found"})

    def answer(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def address_string(self):
        return "local"

    def log_message(self, *_):
        pass


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True

    def __init__(self, listen):
        if listen.startswith("unix:"):
            self.address_family = socket.AF_UNIX
            socketserver.TCPServer.__init__(self, listen[5:], Handler, bind_and_activate=False)
            self.socket.bind(listen[5:])
            self.server_activate()
        else:
            host, port = listen.rsplit(":", 1)
            super().__init__((host, int(port)), Handler)

    def server_bind(self):
        socketserver.TCPServer.server_bind(self)


def main():
    os.makedirs(FOLDER, exist_ok=True)
    write("told.json", {"arguments": sys.argv[1:], "environment": dict(os.environ)})
    print("the agent begins", flush=True)
    if "fails" in MANNERS:
        sys.exit("no room for ComfyUI")
    if "silent" in MANNERS:
        signal.pause()
    write("children.json", children())
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])  # it is waited for below
    with open("/proc/self/stat") as stat:
        started = int(stat.read().rsplit(") ", 1)[1].split()[19])
    write("worker.json", {"pid": os.getpid(), "started": started, "listen": option("--listen"),
                          "instance": os.environ["COMFYD_INSTANCE"]})
    server = Server(option("--listen"))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    while signal.sigwait([signal.SIGTERM]) and "deaf" in MANNERS:
        pass
    os.remove(os.path.join(FOLDER, "worker.json"))


main()
