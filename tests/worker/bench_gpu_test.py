"""The prompts of bench/gpu: every link leads somewhere, and a merged one keeps what each job asks for."""
import argparse
import json
import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench" / "gpu"))

import prompts  # noqa: E402

JOBS = [("a cat", 5), ("a dog", 7), ("a bird", 2**63)]


def options(family, encoders=(), vae=None):
    return argparse.Namespace(family=family, checkpoint="model.safetensors", text_encoders=list(encoders), vae=vae,
                              steps=20, sampler="euler", **prompts.DEFAULTS[family])


ALL = [options(family) for family in prompts.DEFAULTS] + [
    options("sd3", ["l", "g", "t5"]), options("sdxl", ["l", "g"]), options("flux", ["l", "t5"], "ae"),
    options("sd15", ["l"])]


def loose_links(prompt):
    return [(name, key) for name, node in prompt.items() for key, value in node["inputs"].items()
            if isinstance(value, list) and value[0] not in prompt]


class Prompts(unittest.TestCase):
    def test_have_no_loose_links(self):
        for each in ALL:
            self.assertEqual(loose_links(prompts.alone(JOBS[0], each, 3)), [])
            self.assertEqual(loose_links(prompts.merged(JOBS, each)), [])

    def test_merged_keep_texts_seeds_and_prompts(self):
        for each in ALL:
            merged = prompts.merged(JOBS, each)
            latents, texts = merged["latents"]["inputs"], merged["texts"]["inputs"]
            self.assertEqual(latents["jobs"], "5:1,7:1,9223372036854775808:1")
            for i, job in enumerate(JOBS):
                name = texts[f"conditioning{i}"][0]
                while "text" not in merged[name]["inputs"]:
                    name = merged[name]["inputs"]["conditioning"][0]
                self.assertEqual(merged[name]["inputs"]["text"], job[0])
                saved = merged[f"save{i}"]["inputs"]
                self.assertEqual(json.loads(saved["prompt"]), prompts.alone(job, each))
                self.assertEqual(merged[saved["images"][0]]["inputs"]["batch_index"], i)

    def test_merged_take_seeds_and_texts_of_all(self):
        for each in ALL:
            links = [value for node in prompts.merged(JOBS, each).values() for value in node["inputs"].values()]
            self.assertEqual([links.count(link) for link in (["latents", 0], ["latents", 1], ["texts", 0])], [1, 1, 1])


if __name__ == "__main__":
    unittest.main()
