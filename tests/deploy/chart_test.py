"""deploy/helm: what the chart makes of its values is what Kubernetes and comfyd take. tests/deploy/template.py renders it."""
import copy
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import yaml

import servers
from servers import ROOT
from template import Chart, TemplateError

FOLDER = ROOT / "deploy/helm/comfyd"
ABOUT = yaml.safe_load((FOLDER / "Chart.yaml").read_text())
VALUES = yaml.safe_load((FOLDER / "values.yaml").read_text())
SCHEMA = json.loads((FOLDER / "values.schema.json").read_text())
TEMPLATES = sorted((FOLDER / "templates").glob("*.yaml"))
SECRET = {"postgres-password": "p", "cluster-secret": "0123456789abcdef0123456789abcdef", "auth-keys": "ops=a-key-of-an-operator",
          "events-url": "redis://:password@redis:6379"}


def changed(**values):
    """The values with a secret, and with what is said here: `a__b=1` is a.b."""
    made = copy.deepcopy(VALUES)
    for path, value in {"secret__name": "comfyd", **values}.items():
        inner = made
        *names, last = path.split("__")
        for name in names:
            inner = inner[name]
        inner[last] = value
    return made


def render(values):
    """The documents by kind."""
    chart = Chart(values, chart=ABOUT)
    chart.load((FOLDER / "templates/_helpers.tpl").read_text())
    documents = {}
    for file in TEMPLATES:
        document = yaml.safe_load(chart.render(file.read_text()))
        if document:
            documents[document["kind"]] = document
    return documents


def container(documents):
    return documents["Deployment"]["spec"]["template"]["spec"]["containers"][0]


class Rendered(unittest.TestCase):
    def test_all_of_it(self):
        self.assertEqual(sorted(render(changed())), [
            "ConfigMap", "Deployment", "PersistentVolumeClaim", "PodDisruptionBudget", "Service"])
        everything = render(changed(
            ingress__enabled=True, ingress__tlsSecret="certificate", ingress__className="nginx", metrics__serviceMonitor=True,
            metrics__keySecret={"name": "scraper", "key": "key"}, files__storageClass="nfs", podAnnotations={"a": "b"},
            nodeSelector={"disk": "fast"}, tolerations=[{"operator": "Exists"}], service__annotations={"c": "d"},
            image__pullSecrets=[{"name": "registry"}]))
        self.assertEqual(sorted(everything), ["ConfigMap", "Deployment", "Ingress", "PersistentVolumeClaim",
                                              "PodDisruptionBudget", "Service", "ServiceMonitor"])
        self.assertEqual(everything["Ingress"]["spec"]["tls"][0]["secretName"], "certificate")
        self.assertNotIn("PersistentVolumeClaim", render(changed(files__existingClaim="mine")))

    def test_not_without_a_secret(self):
        with self.assertRaises(TemplateError):
            render(VALUES)

    def test_names_belong_together(self):
        documents = render(changed())
        pod = documents["Deployment"]["spec"]["template"]
        labels = pod["metadata"]["labels"].items()
        for selector in (documents["Deployment"]["spec"]["selector"]["matchLabels"], documents["Service"]["spec"]["selector"],
                         documents["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"]):
            self.assertLessEqual(selector.items(), labels)
        volumes = {volume["name"]: volume for volume in pod["spec"]["volumes"]}
        self.assertEqual({mount["name"] for mount in container(documents)["volumeMounts"]}, set(volumes))
        self.assertEqual(volumes["config"]["configMap"]["name"], documents["ConfigMap"]["metadata"]["name"])
        self.assertEqual(volumes["files"]["persistentVolumeClaim"]["claimName"],
                         documents["PersistentVolumeClaim"]["metadata"]["name"])
        port = container(documents)["ports"][0]
        self.assertEqual(documents["Service"]["spec"]["ports"][0]["targetPort"], port["name"])

    def test_a_changed_configuration_makes_new_pods(self):
        first, second = (render(changed(config={"workers": [{"url": url}]}))["Deployment"]["spec"]["template"]["metadata"]
                         for url in ("http://a:8188", "http://b:8188"))
        self.assertNotEqual(first["annotations"], second["annotations"])

    def test_pods_are_without_rights(self):
        documents = render(changed())
        pod = documents["Deployment"]["spec"]["template"]["spec"]
        self.assertTrue(pod["securityContext"]["runAsNonRoot"])
        self.assertEqual(pod["securityContext"]["seccompProfile"], {"type": "RuntimeDefault"})
        self.assertFalse(pod["automountServiceAccountToken"])
        own = container(documents)["securityContext"]
        self.assertEqual(own, {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                               "capabilities": {"drop": ["ALL"]}})
        user = re.search(r"^USER (\d+):(\d+)$", (ROOT / "deploy/Dockerfile").read_text(), re.M)
        self.assertEqual([pod["securityContext"]["runAsUser"], pod["securityContext"]["runAsGroup"]],
                         [int(user[1]), int(user[2])])

    def test_a_node_has_the_time_to_hand_over(self):
        shutdown = VALUES["shutdown"]
        self.assertGreater(shutdown["terminationSeconds"], shutdown["preStopSeconds"] + shutdown["graceSeconds"] + 3)
        strategy = render(changed())["Deployment"]["spec"]["strategy"]
        self.assertEqual(strategy["rollingUpdate"]["maxUnavailable"], 0)


class Started(unittest.TestCase):
    def environment(self, documents):
        made = {}
        for entry in container(documents)["env"]:
            source = entry.get("valueFrom", {})
            made[entry["name"]] = (entry["value"] if "value" in entry else SECRET[source["secretKeyRef"]["key"]]
                                   if "secretKeyRef" in source else "pod-1")
        return made

    def test_comfyd_takes_the_configuration_and_the_environment(self):
        for events in (True, False):
            documents = render(changed(events__enabled=events))
            with tempfile.TemporaryDirectory() as folder:
                file = pathlib.Path(folder) / "comfyd.yaml"
                file.write_text(documents["ConfigMap"]["data"]["comfyd.yaml"])
                ran = subprocess.run([servers.COMFYD, "config", "--config", str(file)], capture_output=True, text=True,
                                     env={"PATH": os.environ["PATH"], **self.environment(documents)})
            self.assertEqual(ran.returncode, 0, ran.stderr)
            told = yaml.safe_load(ran.stdout)
            self.assertEqual(told["listen"], "0.0.0.0:8080")
            self.assertEqual(told["cluster"]["files"], "/srv/comfyd")
            self.assertEqual(bool(told["events"]), events)
            self.assertEqual(container(documents)["args"][0], "serve")

    def test_probes_ask_what_there_is(self):
        with tempfile.TemporaryDirectory() as folder, servers.comfyd("serve", pathlib.Path(folder), "--no-engine") as url:
            for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
                asked = container(render(changed()))[probe]["httpGet"]
                self.assertEqual(asked["port"], "http")
                servers.get(url + asked["path"])


class Values(unittest.TestCase):
    def compare(self, values, schema, path):
        known = schema.get("properties", {})
        if schema.get("additionalProperties", True) is False:
            self.assertLessEqual(set(values), set(known), path)
            self.assertLessEqual(set(known), {*values, "global"}, path)
        for name, value in values.items():
            if isinstance(value, dict) and name in known:
                self.compare(value, known[name], f"{path}.{name}")

    def test_are_those_of_the_schema(self):
        self.compare(VALUES, SCHEMA, "values")

    def test_are_all_used(self):
        used = {path for file in (FOLDER / "templates").iterdir()
                for path in re.findall(r"\.Values\.([\w.]+)", file.read_text())}

        def leaves(values, path=""):
            for name, value in values.items():
                here = f"{path}{name}"
                if here in used:
                    continue
                if isinstance(value, dict) and value:
                    yield from leaves(value, here + ".")
                else:
                    yield here

        self.assertEqual(list(leaves(VALUES)), [])

    def test_version_is_that_of_the_program(self):
        version = re.search(r"project\(comfyd VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())[1]
        self.assertEqual(ABOUT["appVersion"], version)


if __name__ == "__main__":
    unittest.main()
