"""Every workflow of examples/ is listed in its README and runs: what needs no GPU on the engine, the rest on a stand-in
for a ComfyUI that has the classes of a real one and the files that the README names."""
import contextlib
import json
import pathlib
import re
import subprocess
import tempfile
import unittest

import servers
from servers import ROOT

EXAMPLES = ROOT / "examples"
ROW = re.compile(r"\| \[(.+?)\.json\]\(\1\.json\) \| (.+?) \| (.+?) \|\n")
LISTED = {name: worker for name, _, worker in ROW.findall((EXAMPLES / "README.md").read_text())}


def graph_of(name):
    document = json.loads((EXAMPLES / f"{name}.json").read_text())
    return document.get("workflow", document)


def has_seed(name):
    return any(node.get("_meta", {}).get("title") == "seed" for node in graph_of(name).values())


def recorded_classes():
    """Those of a real ComfyUI, with the model files that the README names in its lists."""
    classes = json.loads((ROOT / "tests/data/comfyui/object_info.facts.json").read_text())
    for name, worker in LISTED.items():
        files = set(re.findall(r"`([^`]+)`", worker))
        for node in graph_of(name).values():
            needed = classes[node["class_type"]]["input"].get("required", {})
            for given, value in node["inputs"].items():
                if isinstance(value, str) and value in files:
                    kind = needed[given]
                    choices = kind[0] if isinstance(kind[0], list) else kind[1]["options"]
                    choices.append(value)
    return classes


class Examples(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        stack = contextlib.ExitStack()
        cls.addClassCleanup(stack.close)
        cls.scratch = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        cls.classes = cls.scratch / "object_info.json"
        cls.classes.write_text(json.dumps(recorded_classes()))
        cls.gpu = stack.enter_context(
            servers.double(cls.scratch, "gpu", "--batch-pack", "--nodes", str(cls.classes))
        )
        # A real ComfyUI comes with a picture of this name.
        picture = f"image=@{ROOT / 'tests/data/golden/inputs/colors.png'};filename=example.png"
        subprocess.run(["curl", "-sf", cls.gpu + "/upload/image", "-F", picture], check=True, capture_output=True)
        cls.url = stack.enter_context(
            servers.comfyd("serve", cls.scratch, "--worker", cls.gpu, "--set", "fleet.poll_ms=100",
                           "--set", "engine.offload=true")
        )
        servers.wait_for_workers(cls.url)

    def comfyd(self, *arguments):
        ran = subprocess.run([servers.COMFYD, *arguments], capture_output=True, text=True, timeout=120)
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        return ran.stdout

    def run_example(self, name, *parameters):
        """The files that it made."""
        given = [word for parameter in parameters for word in ("--param", parameter)]
        folder = tempfile.mkdtemp(dir=self.scratch)
        printed = self.comfyd("run", str(EXAMPLES / f"{name}.json"), *given, "--url", self.url, "-o", folder)
        return [pathlib.Path(line) for line in printed.splitlines()]

    def test_all_are_listed(self):
        self.assertEqual(sorted(LISTED), sorted(path.stem for path in EXAMPLES.glob("*.json")))
        self.assertGreaterEqual(len(LISTED), 10)

    def test_all_are_valid(self):
        for name in LISTED:
            with self.subTest(name):
                told = self.comfyd("validate", str(EXAMPLES / f"{name}.json"), "--object-info", str(self.classes))
                self.assertIn(": valid, ", told)

    def test_all_run_and_make_one_picture(self):
        for name in LISTED:
            with self.subTest(name):
                made = self.run_example(name)
                self.assertEqual([path.suffix for path in made], [".png"])
                self.assertGreater(made[0].stat().st_size, 0)

    def test_a_seed_makes_another_picture_and_the_same_one_again(self):
        for name, worker in LISTED.items():
            if worker != "engine":
                continue
            with self.subTest(name):
                self.assertTrue(has_seed(name))
                first, again, other = (self.run_example(name, f"seed={seed}")[0] for seed in (11, 11, 9007199254740991))
                self.assertEqual(pixels(first), pixels(again))
                self.assertNotEqual(pixels(first), pixels(other))

    def test_parameters_that_the_readme_names(self):
        self.assertEqual(len(self.run_example("letters", "text=hello", "seed=random")), 1)
        self.assertEqual(len(self.run_example("watermark", "text=me")), 1)
        self.assertEqual(len(self.run_example("text-to-image-sd15", "prompt=a red bicycle", "seed=random")), 1)
        self.assertEqual(len(self.run_example("text-to-image-sdxl", "checkpoint=v1-5-pruned-emaonly-fp16.safetensors")), 1)
        self.assertEqual(len(self.run_example("inpaint", "picture=example.png", "prompt=a bowl of oranges")), 1)
        self.assertEqual(len(self.run_example("text-to-image-flux", "prompt=rain", "seed=5")), 1)


def pixels(path):
    """The compressed pixels of a PNG: all that is not text about the workflow."""
    data = path.read_bytes()
    at, found = 8, b""
    while at < len(data):
        size = int.from_bytes(data[at:at + 4], "big")
        if data[at + 4:at + 8] == b"IDAT":
            found += data[at + 8:at + 8 + size]
        at += 12 + size
    return found


if __name__ == "__main__":
    unittest.main()
