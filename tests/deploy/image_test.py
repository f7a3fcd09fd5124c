"""deploy/Dockerfile and deploy/systemd: what they install and start agrees with the project and with the program."""
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile
import unittest

import servers
from servers import ROOT

DOCKERFILE = (ROOT / "deploy/Dockerfile").read_text()
STAGES = re.split(r"^FROM ", DOCKERFILE, flags=re.M)[1:]
UNIT = ROOT / "deploy/systemd/comfyd.service"
# Not linked with, but used: certificates, the check of the image's health, a font for pictures with text.
USED = {"ca-certificates", "curl", "fonts-dejavu-core"}
# In every Debian.
ALWAYS = {"libc6", "libgcc-s1"}


def is_debian_12():
    release = pathlib.Path("/etc/os-release")
    text = release.read_text() if release.exists() else ""
    return 'VERSION_ID="12"' in text and "ID=debian" in text.splitlines()


def package_list(kind):
    rows = (line.split() for line in (ROOT / "scripts/packages.txt").read_text().splitlines() if not line.startswith("#"))
    return {name for group, names in rows if group == kind for name in names.split("|")}


def installed():
    command = re.search(r"apt-get install (.*?) &&", STAGES[1].replace("\\\n", " "))
    return {word for word in command[1].split() if not word.startswith("-")}


def instruction(stage, name):
    found = re.search(rf"^{name} (.*)$", stage.replace("\\\n", " "), re.M)
    return found[1] if found else None


class Image(unittest.TestCase):
    def test_is_built_with_the_packages_of_the_project(self):
        self.assertIn("RUN scripts/setup.sh build\n", STAGES[0])
        self.assertNotIn("apt-get", STAGES[0])
        self.assertLess(STAGES[0].index("scripts/setup.sh build"), STAGES[0].index("COPY . ."))

    def test_stages_are_of_the_same_distribution(self):
        self.assertEqual({stage.split()[0] for stage in STAGES}, {"debian:bookworm-slim"})

    def test_takes_tools_that_the_project_names(self):
        self.assertLessEqual(USED, installed())
        self.assertLessEqual(USED, package_list("build"))

    @unittest.skipUnless(is_debian_12() and shutil.which("readelf"), "the names of libraries are those of Debian 12")
    def test_has_the_libraries_that_the_program_needs_and_no_others(self):
        told = subprocess.run(["readelf", "-d", servers.COMFYD], check=True, capture_output=True, text=True).stdout
        if "asan" in told or "tsan" in told or "__asan_init" in told:
            self.skipTest("a sanitized program needs others")
        known = subprocess.run(["/sbin/ldconfig", "-p"], check=True, capture_output=True, text=True).stdout
        packages = set()
        for library in re.findall(r"NEEDED.*\[(.+)\]", told):
            path = re.search(rf"^\s*{re.escape(library)} .*=> (\S+)$", known, re.M)[1]
            found = [subprocess.run(["dpkg", "-S", name], capture_output=True, text=True).stdout
                     for name in (path, str(pathlib.Path(path).resolve()))]
            packages.add(next(owner for owner in found if owner).split(":")[0])
        self.assertEqual(packages - ALWAYS, installed() - USED)

    def test_runs_without_rights_and_is_stopped_as_the_program_wants(self):
        self.assertRegex(instruction(STAGES[1], "USER"), r"^[1-9]\d*:[1-9]\d*$")
        self.assertEqual(instruction(STAGES[1], "STOPSIGNAL"), "SIGTERM")
        self.assertIn("/healthz", instruction(STAGES[1], "HEALTHCHECK"))
        self.assertEqual(instruction(STAGES[1], "ENTRYPOINT"), '["comfyd"]')


class Unit(unittest.TestCase):
    def settings(self, name):
        return re.findall(rf"^{name}=(.*)$", UNIT.read_text(), re.M)

    def test_starts_what_there_is(self):
        program, *arguments = shlex.split(self.settings("ExecStart")[0])
        self.assertEqual(pathlib.Path(program).name, "comfyd")
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "comfyd.yaml"
            file.write_text("log: {level: warning}\n")
            here = {"/etc/comfyd/comfyd.yaml": str(file), "/var/lib/comfyd": folder + "/data"}
            command = [servers.COMFYD, *(here.get(word, word) for word in arguments)]
            with servers.server([*command, "--listen", "127.0.0.1:0"], "listening on ", file.with_suffix(".log")) as url:
                self.assertEqual(servers.get(url + "/readyz")["status"], "ready")

    def test_waits_for_the_program_to_say_that_it_serves(self):
        self.assertEqual(self.settings("Type"), ["notify"])
        self.assertEqual(self.settings("KillSignal"), [], "SIGTERM is what a node hands over at")

    @unittest.skipUnless(shutil.which("systemd-analyze"), "systemd is not installed")
    def test_systemd_takes_it(self):
        with tempfile.TemporaryDirectory() as folder:
            unit = pathlib.Path(folder) / "comfyd.service"
            unit.write_text(UNIT.read_text().replace("/usr/local/bin/comfyd", servers.COMFYD))
            ran = subprocess.run(["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True)
        complaints = [line for line in ran.stderr.splitlines() if "comfyd.service" in line]
        self.assertEqual(complaints, [])


if __name__ == "__main__":
    unittest.main()
