"""What a new user sees first: the progress of a build, and the demo."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import servers
from servers import ROOT


class Build(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "scripts").mkdir()
        (self.root / "build/release").mkdir(parents=True)
        shutil.copy(ROOT / "scripts/build.sh", self.root / "scripts")

    def build(self, files, target):
        rules = "rule good\n  command = touch $out\n  description = Building CXX object $out\n"
        rules += "rule bad\n  command = echo the compiler complains; false\n  description = Building CXX object $out\n"
        steps = "".join(f"build file{i}: good\n" for i in range(files))
        goal = "build all: phony " + " ".join(f"file{i}" for i in range(files)) + "\nbuild broken: bad\n"
        (self.root / "build/release/build.ninja").write_text(rules + steps + goal)
        return subprocess.run(
            [self.root / "scripts/build.sh", "release", target], capture_output=True, text=True, timeout=60
        )

    def test_says_how_much_there_is_to_do_and_how_far_it_is(self):
        ran = self.build(40, "all")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertRegex(ran.stdout, r"40 steps, about \d+ minutes? on \d+ cores?\n")
        self.assertIn("50 %  20 of 40", ran.stdout)
        self.assertIn("100 %  40 of 40\n", ran.stdout)

    def test_is_quiet_when_nothing_is_to_be_done(self):
        self.build(40, "all")
        self.assertEqual(self.build(40, "all").stdout, "")

    def test_shows_what_the_compiler_said_when_it_fails(self):
        ran = self.build(3, "broken")
        self.assertEqual(ran.returncode, 1)
        self.assertIn("the compiler complains", ran.stderr)


class Demo(unittest.TestCase):
    def test_lists_pictures_and_what_to_do_next(self):
        with tempfile.TemporaryDirectory() as folder:
            ran = subprocess.run(
                [ROOT / "scripts/demo.sh"],
                env={**os.environ, "COMFYD": servers.COMFYD, "OUT": f"{folder}/out"},
                capture_output=True,
                text=True,
                timeout=300,
            )
            self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
            made = {path.name for path in pathlib.Path(folder, "out").iterdir()}
        listed = re.findall(r"^  (\S+\.png) +\w.*$", ran.stdout, re.M)
        self.assertEqual(set(listed), made)
        self.assertGreaterEqual(len(listed), 8)
        self.assertEqual(len(re.findall(r"^  .* # ", ran.stdout, re.M)), 3, "commands to try next")


if __name__ == "__main__":
    unittest.main()
