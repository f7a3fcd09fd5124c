#!/usr/bin/env python3
"""Pictures per second of the whole path: `comfyd serve --comfyui DIR` with one process on each GPU and one prompt at a
time, then with several processes packed on it and jobs merged. Needs Python 3.8, comfyd and a ComfyUI. See README.md."""
import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time

from comfyui import Failed, Server
import prompts

START_SECONDS = 600


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--comfyd", default="comfyd", metavar="PROGRAM", help="default: comfyd")
    parser.add_argument("--comfyui", required=True, metavar="DIR", help="the folder of ComfyUI's main.py")
    parser.add_argument("--python", default="", help="that it runs with (default: as comfyd finds it)")
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument("--family", choices=("sd15", "sdxl"), default="sd15")
    parser.add_argument("--per-gpu", type=int, default=3, help="processes packed on a GPU (default 3)")
    parser.add_argument("--merge", type=int, default=4, help="jobs merged into a run, at most (default 4)")
    parser.add_argument("--images", type=int, default=96, help="of the packed measurement (default 96)")
    parser.add_argument("--at-least", type=float, default=0, metavar="FACTOR",
                        help="end with status 1 where packing and merging bring less")
    parser.add_argument("--json", metavar="FILE", help="write the results there too")
    parser.add_argument("comfyui_arguments", nargs="*", metavar="-- ARGUMENT", help="arguments for ComfyUI")
    options = parser.parse_args()
    options.text_encoders, options.vae = [], None
    options.steps, options.sampler = 20, "euler"
    for name, value in prompts.DEFAULTS[options.family].items():
        setattr(options, name, value)
    return options


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Comfyd:
    """One comfyd with a folder of its own, and all that it starts."""

    def __init__(self, options, per_gpu, merge):
        self.folder = tempfile.TemporaryDirectory(prefix="comfyd-bench-")
        port = free_port()
        settings = [f"comfyui.per_gpu={per_gpu}", f"scheduler.merge_max={merge}"]
        if options.python:
            settings.append(f"comfyui.python={options.python}")
        if options.comfyui_arguments:
            settings.append("comfyui.arguments=" + ",".join(options.comfyui_arguments))
        self.log = os.path.join(self.folder.name, "comfyd.log")
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                [options.comfyd, "serve", "--no-engine", "--listen", f"127.0.0.1:{port}", "--data",
                 os.path.join(self.folder.name, "data"), "--comfyui", options.comfyui,
                 *[word for setting in settings for word in ("--set", setting)]], stdout=log, stderr=log)
        self.server = Server(f"http://127.0.0.1:{port}")

    def __enter__(self):
        start = time.monotonic()
        workers = []
        while True:
            try:
                workers = self.server.get("/admin/v1/workers")["workers"]
                if workers and all(worker["status"] in ("idle", "running") for worker in workers):
                    self.seconds = time.monotonic() - start
                    self.workers = len(workers)
                    return self
            except (OSError, Failed, ValueError):
                pass
            failed = self.failed_start()
            if failed:
                self.__exit__()
                raise Failed(f"ComfyUI does not start: {failed}")
            if self.process.poll() is not None or time.monotonic() - start > START_SECONDS:
                with open(self.log) as log:
                    tail = log.read()[-3000:]
                self.__exit__()
                raise Failed(f"comfyd has not got its workers ready:\n{tail}\n{json.dumps(workers)[:2000]}")
            time.sleep(0.2)

    def failed_start(self):
        """Why a process did not come up: comfyd would go on and try again, a measurement need not wait for that."""
        try:
            ended = self.server.get("/admin/v1/fleet")["ended"]
        except (OSError, Failed, ValueError):
            return None
        return next((machine["reason"] for machine in ended if machine["state"] == "failed"), None)

    def __exit__(self, *_):
        # The processes on the GPU outlive comfyd; here they shall not.
        self.process.terminate()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
        end_machines(os.path.join(self.folder.name, "data", "machines"))
        self.folder.cleanup()


def end_machines(folder):
    marked = [int(pid) for pid in os.listdir("/proc") if pid.isdigit() and was_given(pid, folder)]
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in marked:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and any(was_given(pid, folder) for pid in marked):
            time.sleep(0.1)


def was_given(pid, folder):
    try:
        with open(f"/proc/{pid}/environ", "rb") as environment:
            return f"COMFYUI_MACHINE={folder}/".encode() in environment.read()
    except OSError:
        return False


class Bench:
    def __init__(self, options):
        self.options, self.used, self.rows = options, 0, []

    def jobs(self, count):
        """Texts and seeds that no server has seen: results must not come from its cache."""
        start, self.used = self.used, self.used + count
        stamp = int(time.time())
        return [prompts.alone((f"a house on hill number {start + i}", stamp + start + i), self.options)
                for i in range(count)]

    def row(self, name, images, seconds):
        rate = images / seconds
        factor = rate / self.rows[0]["images_per_second"] if self.rows else 1.0
        self.rows.append({"what": name, "images": images, "seconds": seconds, "images_per_second": rate,
                          "factor": factor})
        print(f"| {name} | {rate:.2f} | x{factor:.2f} |", flush=True)
        return factor

    def all_at_once(self, server, count):
        for prompt_id in [server.submit(prompt) for prompt in self.jobs(count)]:
            server.wait(prompt_id)

    def one_at_a_time(self):
        with Comfyd(self.options, 1, 1) as comfyd:
            comfyd.server.run(self.jobs(1)[0])
            count = max(self.options.images // 6, 4)
            start = time.monotonic()
            for prompt in self.jobs(count):
                comfyd.server.run(prompt)
            self.row("one prompt at a time", count, time.monotonic() - start)

    def packed(self):
        options = self.options
        with Comfyd(options, options.per_gpu, options.merge) as comfyd:
            print(f"({comfyd.workers} processes were ready after {comfyd.seconds:.0f} s)")
            self.all_at_once(comfyd.server, comfyd.workers * options.merge * 2)  # warm, and comfyd knows the times
            start = time.monotonic()
            self.all_at_once(comfyd.server, options.images)
            return self.row(f"packed, {options.per_gpu} per GPU, merged up to {options.merge}", options.images,
                            time.monotonic() - start)


def main():
    options = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # so that its own servers end with it
    bench = Bench(options)
    print(f"{options.family}, {options.checkpoint}\n\n| how | images/s | |\n|---|---|---|")
    try:
        bench.one_at_a_time()
        factor = bench.packed()
    except Failed as failure:
        raise SystemExit(str(failure))
    if options.json:
        with open(options.json, "w") as file:
            json.dump(bench.rows, file, indent=1)
    if factor < options.at_least:
        raise SystemExit(f"x{factor:.2f} is less than x{options.at_least:.2f}")


if __name__ == "__main__":
    main()
