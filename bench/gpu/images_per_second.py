#!/usr/bin/env python3
"""Pictures per second of one GPU: one prompt at a time, merged into batches, several ComfyUI processes packed on it,
and both; and whether a merged job gets the picture of its own run. Needs Python 3.8 and nothing else. See README.md."""
import argparse
import json
import signal
import sys
import threading
import time

from comfyui import Failed, OwnServers, Server
import png
import prompts


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", action="append", default=[], metavar="URL",
                        help="a running ComfyUI with the node pack; several that share a GPU for packing")
    parser.add_argument("--start", metavar="DIR", help="start ComfyUI from this work tree instead")
    parser.add_argument("--processes", type=int, default=1, help="with --start: how many (default 1)")
    parser.add_argument("--port", type=int, default=8300, help="with --start: of the first (default 8300)")
    parser.add_argument("--comfyd", metavar="URL", help="also measure jobs that are sent to this comfyd all at once")
    parser.add_argument("--family", choices=prompts.DEFAULTS, default="sd15", help="which workflow (default sd15)")
    parser.add_argument("--checkpoint", required=True, help="the model; with --vae a file that holds nothing else")
    parser.add_argument("--text-encoders", default="", metavar="FILE[,FILE…]",
                        help="where the checkpoint has none: up to three, in the order of ComfyUI's loaders")
    parser.add_argument("--vae", metavar="FILE", help="where the checkpoint has none")
    parser.add_argument("--width", type=int, help="default 512 for sd15, else 1024")
    parser.add_argument("--height", type=int, help="likewise")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--cfg", type=float, help="default 8; 4.5 for sd3; for flux the guidance, 3.5")
    parser.add_argument("--sampler", default="euler")
    parser.add_argument("--scheduler", help="default normal; sgm_uniform for sd3, simple for flux")
    parser.add_argument("--batches", default="2,4,8", help="sizes of merged batches (default 2,4,8)")
    parser.add_argument("--images", type=int, default=16, help="pictures per measurement and process (default 16)")
    parser.add_argument("--compare", type=int, default=2, metavar="N",
                        help="compare so many pictures of a merged run with those of the jobs alone (default 2)")
    parser.add_argument("--json", metavar="FILE", help="write the results there too")
    parser.add_argument("comfyui", nargs="*", metavar="-- ARGUMENT", help="with --start: arguments for ComfyUI")
    options = parser.parse_args()
    if bool(options.server) == bool(options.start):
        parser.error("give either --server or --start")
    options.batches = [int(size) for size in options.batches.split(",") if size]
    options.text_encoders = [name for name in options.text_encoders.split(",") if name]
    if len(options.text_encoders) > 3:
        parser.error("give at most three --text-encoders")
    if options.vae and not options.text_encoders:
        parser.error("with --vae give --text-encoders too")
    for name, value in prompts.DEFAULTS[options.family].items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    return options


class Bench:
    def __init__(self, servers, options):
        self.servers, self.options = servers, options
        self.used = 0
        self.rows = []
        self.base = None

    def jobs(self, count):
        """Texts and seeds that no server has seen: results must not come from its cache."""
        start = self.used
        self.used += count
        stamp = int(time.time())
        return [(f"a house on hill number {start + i}", stamp + start + i) for i in range(count)]

    def prompts(self, count, batch):
        jobs = self.jobs(count)
        if batch == 1:
            return [prompts.alone(job, self.options) for job in jobs]
        return [prompts.merged(jobs[i:i + batch], self.options) for i in range(0, count, batch)]

    def row(self, name, images, seconds):
        rate = images / seconds
        self.base = self.base or rate
        self.rows.append({"what": name, "images": images, "seconds": round(seconds, 3),
                          "images_per_second": round(rate, 3), "factor": round(rate / self.base, 2)})
        print(f"| {name} | {rate:.2f} | x{rate / self.base:.2f} |", flush=True)

    def measure(self, name, servers, batch):
        """Each server works off its own prompts, one after the other."""
        per_server = max(self.options.images // batch, 1) * batch
        work = [self.prompts(per_server, batch) for _ in servers]
        failures = []

        def drive(server, own):
            try:
                for prompt in own:
                    server.run(prompt)
            except Exception as failure:  # told below: a thread has nobody to raise to
                failures.append(failure)

        threads = [threading.Thread(target=drive, args=pair) for pair in zip(servers, work)]
        start = time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        seconds = time.monotonic() - start
        if failures:
            raise failures[0]
        self.row(name, per_server * len(servers), seconds)

    def measure_comfyd(self, comfyd):
        work = self.prompts(self.options.images, 1)
        start = time.monotonic()
        for prompt_id in [comfyd.submit(prompt) for prompt in work]:
            comfyd.wait(prompt_id)
        self.row("through comfyd", len(work), time.monotonic() - start)

    def warm_up(self):
        for server in self.servers:
            for batch in {1, *self.options.batches}:
                for prompt in self.prompts(batch, batch):
                    server.run(prompt)

    def compare(self, count):
        server = self.servers[0]
        jobs = self.jobs(count)

        def pictures(prompt, names):
            outputs = server.run(prompt)
            return [server.picture(image) for name in names for image in outputs[name]["images"]]

        merged = pictures(prompts.merged(jobs, self.options), [f"save{i}" for i in range(count)])
        written = [json.loads(png.texts(picture).get("prompt", "null")) for picture in merged]
        together = [png.pixels(picture) for picture in merged]
        alone = [png.pixels(pictures(prompts.alone(job, self.options), ["9"])[0]) for job in jobs]
        batch = png.pixels(pictures(prompts.alone(jobs[0], self.options, count), ["9"])[0])
        for i in range(count):
            inside = "yes" if written[i] == prompts.alone(jobs[i], self.options) else "NO"
            self.differ(f"job {i}, merged against alone", together[i], alone[i], f"; its own prompt inside: {inside}")
        self.differ(f"job 0 in ComfyUI itself, batch_size {count} against 1", batch, alone[0])
        self.differ(f"job 0, merged against batch_size {count}", together[0], batch)
        self.differ("two different jobs", alone[0], alone[1])

    def differ(self, name, one, two, more=""):
        mean, largest = png.difference(one, two)
        print(f"{name}: mean {mean:.3f} of 255, largest {largest}{more}")
        self.rows.append({"what": name, "mean": round(mean, 4), "largest": largest})


def run(servers, options):
    missing = [name for name in ("ComfydLatentBatch", "ComfydConditioningBatch", "ComfydSaveImage")
               for server in servers if name not in server.classes()]
    if missing:
        raise Failed(f"the node pack is not installed ({missing[0]}): copy worker/comfyui_nodes/comfyd into "
                     "custom_nodes and restart ComfyUI")
    bench = Bench(servers, options)
    bench.warm_up()
    print(f"{options.family}, {options.checkpoint}, {options.width}x{options.height}, {options.steps} steps "
          f"{options.sampler}\n")
    print("| how | images/s | |\n|---|---|---|")
    bench.measure("one prompt at a time", servers[:1], 1)
    for batch in options.batches:
        bench.measure(f"merged, {batch} jobs", servers[:1], batch)
    for count in range(2, len(servers) + 1):
        bench.measure(f"packed, {count} processes", servers[:count], 1)
        for batch in options.batches:
            bench.measure(f"packed, {count} processes, merged, {batch} jobs", servers[:count], batch)
    if options.comfyd:
        bench.measure_comfyd(Server(options.comfyd))
    print()
    if options.compare > 1:
        bench.compare(options.compare)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(bench.rows, file, indent=1)


def main():
    options = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # so that its own servers end with it
    try:
        if options.start:
            with OwnServers(options.start, options.processes, options.port, options.comfyui) as servers:
                run(servers, options)
        else:
            run([Server(url) for url in options.server], options)
    except Failed as failure:
        raise SystemExit(str(failure))


if __name__ == "__main__":
    main()
