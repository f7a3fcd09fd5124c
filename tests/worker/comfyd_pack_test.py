"""The ComfyUI node pack comfyd, as far as it can be tested without torch."""
import asyncio
import json
import math
import pathlib
import re
import sys
import types
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "worker" / "comfyui_nodes"))

import stand_in  # noqa: E402
from stand_in import Tensor, latent, tokens  # noqa: E402

stand_in.install()
import comfyd  # noqa: E402
from comfyd import batch as pack, fence, warm  # noqa: E402

sample = sys.modules["comfy.sample"]
sampling = sys.modules["comfy.k_diffusion.sampling"]
execution, nodes = sys.modules["execution"], sys.modules["nodes"]
server = sys.modules["server"].PromptServer.instance


def join_latents(jobs, *latents):
    return pack.LatentBatch().join(jobs, **{f"latent{i}": item for i, item in enumerate(latents)})


def join_conditionings(counts, *conditionings):
    given = {f"conditioning{i}": item for i, item in enumerate(conditionings)}
    (joined,), = pack.ConditioningBatch().join(counts, **given)
    return joined


def conditioning(text, length=77, width=768, **options):
    return [[tokens(text, length, width), options]]


class Latents(unittest.TestCase):
    def test_are_joined_in_the_order_of_the_jobs(self):
        joined, seeds = join_latents("5:1,7:2", latent("a"), latent("b", 2))
        self.assertEqual(joined["samples"].samples, ["a0", "b0", "b1"])
        self.assertEqual(joined["samples"].shape, (3, 4, 64, 64))
        self.assertEqual(seeds.jobs, [(5, 1), (7, 2)])

    def test_may_be_joined_already(self):
        joined, _ = join_latents("5:1,7:2", latent("a", 3))
        self.assertEqual(joined["samples"].samples, ["a0", "a1", "a2"])

    def test_keep_what_else_they_carry(self):
        first = dict(latent("a"), downscale_ratio_spacial=8)
        self.assertEqual(join_latents("5:1,7:1", first, first)[0]["downscale_ratio_spacial"], 8)

    def test_that_do_not_fit_are_refused(self):
        masked = dict(latent("a"), noise_mask=Tensor(["m"], (1, 1, 64, 64)))
        for jobs, latents in (
            ("5:1,7:1", [latent("a"), latent("b", size=32)]),
            ("5:1,7:1", [latent("a"), latent("b", 2)]),
            ("5:1,7:1", [latent("a", 3)]),
            ("5:1,7:1,8:1", [latent("a"), latent("b")]),
            ("5:1,7:1", [masked, masked]),
            ("5:1,7:1", [dict(latent("a"), batch_index=[1]), latent("b")]),
        ):
            with self.subTest(jobs=jobs), self.assertRaises(ValueError):
                join_latents(jobs, *latents)


class Noise(unittest.TestCase):
    def setUp(self):
        self.joined, self.seeds = join_latents("5:1,18446744073709551615:2", latent("a"), latent("b", 2))

    def alone(self, draw):
        return draw(latent("a")["samples"], 5).samples + draw(latent("b", 2)["samples"], 18446744073709551615).samples

    def test_is_that_of_each_job_alone(self):
        drawn = sample.prepare_noise(self.joined["samples"], self.seeds, None)
        self.assertEqual(drawn.samples, self.alone(stand_in.prepare_noise))

    def test_of_every_step_is_that_of_each_job_alone(self):
        drawn = sampling.default_noise_sampler(self.joined["samples"], seed=self.seeds)(1, 0)
        self.assertEqual(drawn.samples, self.alone(lambda x, seed: stand_in.default_noise_sampler(x, seed)(1, 0)))

    def test_of_brownian_trees_is_that_of_each_job_alone(self):
        drawn = sampling.BrownianTreeNoiseSampler(self.joined["samples"], 0.1, 10, seed=self.seeds, cpu=True)(1, 0)
        self.assertEqual(drawn.samples, self.alone(
            lambda x, seed: stand_in.BrownianTreeNoiseSampler(x, 0.1, 10, seed=seed, cpu=True)(1, 0)))

    def test_for_a_plain_seed_is_as_before(self):
        x = latent("a", 2)["samples"]
        self.assertEqual(sample.prepare_noise(x, 5).samples, ["noise 5/0", "noise 5/1"])
        self.assertEqual(sampling.default_noise_sampler(x, seed=5)(1, 0).samples, ["step 5/0", "step 5/1"])
        tree = sampling.BrownianTreeNoiseSampler(x, 0.1, 10, seed=5)
        self.assertIsInstance(tree, stand_in.BrownianTreeNoiseSampler)
        self.assertEqual(tree(1, 0).samples, ["tree 5/0 False", "tree 5/1 False"])

    def test_is_never_drawn_with_the_seeds_as_one_number(self):
        with self.assertRaises(RuntimeError):
            stand_in.prepare_noise(self.joined["samples"], self.seeds)

    def test_is_refused_for_another_number_of_samples(self):
        with self.assertRaises(ValueError):
            sample.prepare_noise(latent("a", 4)["samples"], self.seeds)


class Conditionings(unittest.TestCase):
    def test_are_joined_and_repeated_for_each_sample(self):
        joined, _ = join_conditionings("1,2", conditioning("a", 2), conditioning("b", 2))
        self.assertEqual(joined.samples, [["a0", "a1"], ["b0", "b1"], ["b0", "b1"]])
        self.assertEqual(joined.shape, (3, 2, 768))

    def test_of_clip_are_repeated_to_the_same_length(self):
        for width in (768, 1024, 1280, 2048):
            joined, _ = join_conditionings("1,1", conditioning("a", 77, width), conditioning("b", 154, width))
            self.assertEqual(joined.shape, (2, 154, width))
            self.assertEqual(joined.samples[0], tokens("a", 77).samples[0] * 2)
        joined, _ = join_conditionings("1,1", conditioning("a", 154), conditioning("b", 231))
        self.assertEqual(joined.shape, (2, 462, 768))

    def test_of_other_encoders_must_have_the_same_length(self):
        join_conditionings("1,1", conditioning("a", 256, 4096), conditioning("b", 256, 4096))
        for first, second, width in ((256, 300, 4096), (154, 231, 4096), (77, 100, 768)):
            with self.subTest(width=width), self.assertRaises(ValueError):
                join_conditionings("1,1", conditioning("a", first, width), conditioning("b", second, width))

    def test_have_their_pooled_outputs_joined(self):
        def pooled(text):
            return conditioning(text, pooled_output=Tensor([text], (1, 1280)), guidance=3.5, crop_w=8)

        _, options = join_conditionings("2,1", pooled("a"), pooled("b"))
        self.assertEqual(options["pooled_output"].samples, ["a", "a", "b"])
        self.assertEqual((options["guidance"], options["crop_w"]), (3.5, 8))

    def test_that_differ_elsewhere_are_refused(self):
        tensor = Tensor(["x"], (1, 77))
        for first, second in (
            ({"guidance": 3.5}, {"guidance": 4.0}),
            ({"pooled_output": tensor}, {"pooled_output": None}),
            ({"pooled_output": tensor}, {}),
            ({"attention_mask": tensor}, {"attention_mask": tensor}),
            ({"area": (1, 2)}, {"area": (1, 2)}),
            ({"control": object()}, {}),
        ):
            with self.subTest(first=first), self.assertRaises(ValueError):
                join_conditionings("1,1", conditioning("a", **first), conditioning("b", **second))
        with self.assertRaises(ValueError):
            join_conditionings("1,1", conditioning("a") * 2, conditioning("b"))
        with self.assertRaises(ValueError):
            join_conditionings("1,1", conditioning("a"))

    def test_without_pooled_outputs(self):
        _, options = join_conditionings(
            "1,1", conditioning("a", pooled_output=None), conditioning("b", pooled_output=None))
        self.assertEqual(options, {"pooled_output": None})


class Saving(unittest.TestCase):
    def test_writes_what_belongs_to_the_job(self):
        for preview, kind in ((False, "output"), (True, "temp")):
            images = Tensor(["picture"], (1, 64, 64, 3))
            result = pack.SaveImage().save(images, '{"3": 1}', '{"workflow": {"id": 7}}', preview, "own")
            self.assertEqual(stand_in.SaveImage.saved.pop(),
                             (kind, ["picture"], "own", {"3": 1}, {"workflow": {"id": 7}}))
            self.assertEqual(result, {"ui": {"images": [{"filename": "own", "type": kind}]}, "result": (images,)})


class Warming(unittest.TestCase):
    def touch(self, **loaded):
        stand_in.ModelPatcher.in_memory.clear()
        self.assertEqual(warm.Warm().touch(**loaded), {})
        return stand_in.ModelPatcher.in_memory

    def test_brings_every_kind_of_model_into_memory_and_what_samples_last(self):
        model = stand_in.ModelPatcher("model")
        clip, vae = (types.SimpleNamespace(patcher=stand_in.ModelPatcher(name)) for name in ("clip", "vae"))
        control = types.SimpleNamespace(control_model_wrapped=stand_in.ModelPatcher("control"))
        self.assertEqual(self.touch(loaded0=model), ["model"])
        self.assertEqual(self.touch(loaded0=model, loaded1=clip, loaded2=vae, loaded3=control),
                         ["clip", "vae", "control", "model"])

    def test_passes_over_what_memory_management_does_not_know(self):
        self.assertEqual(self.touch(loaded0=object(), loaded1=types.SimpleNamespace(patcher=None), loaded2=None), [])

    def test_is_never_answered_from_the_cache(self):
        self.assertTrue(math.isnan(warm.Warm.IS_CHANGED(loaded0="a")))


class ObjectInfo(unittest.TestCase):
    def test_is_what_the_double_tells(self):
        text = (ROOT / "tests" / "support" / "double" / "catalogue_pack.cpp").read_text()
        told = json.loads(re.search(r'R"json\((.*)\)json"', text, re.DOTALL).group(1))
        del told["ImageFromBatch"]
        self.assertEqual(set(told), set(comfyd.NODE_CLASS_MAPPINGS))
        self.assertEqual(set(told), set(comfyd.NODE_DISPLAY_NAME_MAPPINGS))
        for name, node in comfyd.NODE_CLASS_MAPPINGS.items():
            inputs = json.loads(json.dumps(node.INPUT_TYPES()))
            self.assertLessEqual(set(told[name]["input"]["optional"]), set(inputs["optional"]))
            self.assertEqual(told[name]["input"]["required"], inputs["required"])
            self.assertEqual(told[name]["output"], list(node.RETURN_TYPES))
            self.assertEqual(told[name]["output_node"], getattr(node, "OUTPUT_NODE", False))
            self.assertTrue(callable(getattr(node, node.FUNCTION)))


def ask(method, path, body=None):
    return asyncio.run(server.routes.handlers[method, path](stand_in.Request(body)))


class Classes(unittest.TestCase):
    def tearDown(self):
        nodes.NODE_CLASS_MAPPINGS.clear()

    def test_tell_which_inputs_they_check_themselves(self):
        class Plain:
            pass

        class Named:
            @classmethod
            def VALIDATE_INPUTS(cls, image, size=1):
                return True

        class All:
            @classmethod
            def VALIDATE_INPUTS(cls, **inputs):
                return True

        class Types:
            @classmethod
            def VALIDATE_INPUTS(cls, input_types):
                return True

            @classmethod
            def IS_CHANGED(cls):
                return 1

        class Newer:
            GET_BASE_CLASS = None
            VALIDATE_INPUTS = "of another interface"

            @classmethod
            def validate_inputs(cls, choice):
                return True

        class NewerPlain:
            GET_BASE_CLASS = None

        nodes.NODE_CLASS_MAPPINGS.update(
            {c.__name__: c for c in (Plain, Named, All, Types, Newer, NewerPlain)})
        status, told = ask("GET", "/comfyd/classes")
        self.assertEqual(status, 200)
        self.assertEqual(set(told["own_checks"]), {"Named", "All", "Types", "Newer"})
        self.assertEqual(told["changing"], ["Types"])
        self.assertEqual(told["own_checks"]["Named"],
                         {"inputs": ["cls", "image", "size"], "all_inputs": False, "link_types": False})
        self.assertTrue(told["own_checks"]["All"]["all_inputs"])
        self.assertTrue(told["own_checks"]["Types"]["link_types"])
        self.assertEqual(told["own_checks"]["Newer"]["inputs"], ["cls", "choice"])


class Validating(unittest.TestCase):
    PROMPT = {"1": {"class_type": "Old", "inputs": {}}}
    REFUSED = (False, {"type": "prompt_outputs_failed_validation"}, [], {"1": {"errors": ["bad"]}})

    def setUp(self):
        self.asked = []

    def tearDown(self):
        server.on_prompt_handlers.clear()
        vars(server).pop("node_replace_manager", None)

    def validate_with(self, function, **more):
        execution.validate_prompt = function
        return ask("POST", "/comfyd/validate", {"prompt": json.loads(json.dumps(self.PROMPT)), **more})

    def test_answers_as_the_server_would(self):
        async def refuse(prompt_id, prompt, targets):
            self.asked.append((len(prompt_id), prompt, targets))
            return self.REFUSED

        async def accept(prompt_id, prompt, targets):
            return True, None, ["1"], {"2": {"errors": []}}

        self.assertEqual(self.validate_with(refuse, partial_execution_targets=["1"]),
                         (400, {"error": self.REFUSED[1], "node_errors": self.REFUSED[3]}))
        self.assertEqual(self.asked, [(36, self.PROMPT, ["1"])])
        self.assertEqual(self.validate_with(accept), (200, {"outputs": ["1"], "node_errors": {"2": {"errors": []}}}))

    def test_asks_older_servers_in_their_way(self):
        async def two(prompt_id, prompt):
            self.asked.append((len(prompt_id), prompt))
            return self.REFUSED

        def one(prompt):
            self.asked.append(prompt)
            return self.REFUSED

        for function in (two, one):
            self.assertEqual(self.validate_with(function)[0], 400)
        self.assertEqual(self.asked, [(36, self.PROMPT), self.PROMPT])

    def test_lets_the_server_change_the_prompt_first(self):
        class Replacer:
            def apply_replacements(self, prompt):
                prompt["1"]["class_type"] += "er and newer"

        def handle(request):
            request["prompt"]["1"]["class_type"] = "Old"
            return request

        async def accept(prompt_id, prompt, targets):
            self.asked.append(prompt["1"]["class_type"])
            return True, None, ["1"], {}

        server.on_prompt_handlers.append(handle)
        server.node_replace_manager = Replacer()
        self.validate_with(accept)
        self.assertEqual(self.asked, ["Older and newer"])


class Fencing(unittest.TestCase):
    def setUp(self):
        self.ran = []
        fence.fence.__init__()

    def announce(self, domain, epoch):
        return ask("POST", "/comfyd/lead", {"domain": domain, "epoch": epoch})

    def post(self, prompt_id, domain="main", epoch=1, status=200, path="/prompt", meanwhile=lambda: None):
        async def handler(request):
            self.ran.append((await request.json())["prompt_id"])
            meanwhile()
            if status == "raises":
                raise RuntimeError("the server got itself in trouble")
            if status == "cancelled":
                raise asyncio.CancelledError
            return stand_in.json_response({}, status)

        body = {"prompt_id": prompt_id, "extra_data": {"comfyd_lead": {"domain": domain, "epoch": epoch}}}
        keep_out, = server.app.middlewares
        answer, told = asyncio.run(keep_out(stand_in.Request(body, path=path), handler))
        return answer if answer != 409 else told["error"]["type"]

    def test_lets_the_leader_pass(self):
        self.assertEqual([self.post("a"), self.post("b"), self.post("c", epoch=2, path="/api/prompt")], [200] * 3)
        self.assertEqual(self.ran, ["a", "b", "c"])

    def test_refuses_lower_epochs_of_the_same_domain(self):
        self.post("a", epoch=3)
        self.assertEqual(self.post("b", epoch=2), "comfyd_lower_epoch")
        self.assertEqual(self.post("b", "other", epoch=2), 200)
        self.assertEqual(self.ran, ["a", "b"])

    def test_hears_of_a_new_leader(self):
        self.assertEqual(self.announce("main", 4), (200, {"domain": "main", "epoch": 4}))
        self.assertEqual(self.announce("main", 4)[0], 200)
        status, told = self.announce("main", 3)
        self.assertEqual((status, told["error"]["type"]), (409, "comfyd_lower_epoch"))
        self.assertEqual(self.post("a", epoch=3), "comfyd_lower_epoch")
        for bad in ({}, {"domain": "main"}, {"domain": "", "epoch": 1}, {"domain": "main", "epoch": True}, [], None):
            self.assertEqual(ask("POST", "/comfyd/lead", bad)[0], 400)

    def test_runs_a_prompt_once(self):
        self.post("a")
        self.assertEqual(self.post("a", epoch=2), "comfyd_known_prompt")
        self.assertEqual(self.ran, ["a"])

    def test_a_prompt_is_known_while_it_is_checked(self):
        def again():
            self.assertEqual(fence.fence.admit("main", 1, "a")["type"], "comfyd_known_prompt")

        self.assertEqual(self.post("a", meanwhile=again), 200)

    def test_a_prompt_that_was_not_taken_may_come_again(self):
        self.assertEqual(self.post("a", status=400), 400)
        with self.assertRaises(RuntimeError):
            self.post("a", status="raises")
        self.assertEqual(self.post("a"), 200)

    def test_a_prompt_that_may_have_been_taken_does_not_come_again(self):
        with self.assertRaises(asyncio.CancelledError):
            self.post("a", status="cancelled")
        self.assertEqual(self.post("a"), "comfyd_known_prompt")

    def test_remembers_many_prompts_but_not_all(self):
        fence.PROMPTS_MAX = 2
        for name in ("a", "b", "c"):
            self.post(name)
        fence.PROMPTS_MAX = 100_000
        self.assertEqual(self.post("c"), "comfyd_known_prompt")
        self.assertEqual(self.post("a"), 200)

    def test_other_requests_pass(self):
        async def handler(request):
            self.ran.append(request.path)
            return stand_in.json_response({})

        keep_out, = server.app.middlewares
        led = {"prompt_id": "a", "extra_data": {"comfyd_lead": {"domain": "main", "epoch": 1}}}
        for request in (
            stand_in.Request(led, method="GET", path="/prompt"),
            stand_in.Request(led, path="/queue"),
            stand_in.Request({"prompt_id": "a"}, path="/prompt"),
            stand_in.Request({"extra_data": {"comfyd_lead": {"domain": "main", "epoch": 1}}}, path="/prompt"),
            stand_in.Request({"prompt_id": "a", "extra_data": {"comfyd_lead": 3}}, path="/prompt"),
            stand_in.Request({"prompt_id": "a", "extra_data": "comfyd_lead"}, path="/prompt"),
            stand_in.Request(text="comfyd_lead is no JSON", path="/prompt"),
            stand_in.Request(text="", path="/prompt"),
        ):
            for _ in range(2):
                self.assertEqual(asyncio.run(keep_out(request, handler))[0], 200)
        self.assertEqual(len(self.ran), 16)


if __name__ == "__main__":
    unittest.main()
