"""Nodes with which comfyd lets several jobs share one sampling run.

A merged prompt uses ComfyUI's own samplers. What they lack is done here: latents and conditionings
of several jobs joined along the batch axis, noise drawn for each job by its own seed, and pictures
saved with the prompt of the job that they belong to.
"""
import json
import math

import torch

import comfy.k_diffusion.sampling
import comfy.sample
import nodes

JOBS_MAX = 64


class JobSeeds(int):
    """The seeds of all jobs, in the place of the one seed of a sampler.

    As a number it is larger than any seed: what does not know it fails instead of giving every job
    the noise of another.
    """

    def __new__(cls, jobs):
        seeds = super().__new__(cls, 1 << 70)
        seeds.jobs = jobs  # [(seed, number of samples)]
        return seeds

    def split(self, samples):
        """(samples of a job, its seed) for each job."""
        if samples.shape[0] != sum(count for _, count in self.jobs):
            raise ValueError(f"{samples.shape[0]} samples for the jobs {self.jobs}")
        start = 0
        for seed, count in self.jobs:
            yield samples[start:start + count], seed
            start += count


def per_job(one):
    """`one` draws the noise of a job; what comes back also does that of several."""

    def prepare_noise(latent_image, seed, *rest, **options):
        if not isinstance(seed, JobSeeds):
            return one(latent_image, seed, *rest, **options)
        return torch.cat([one(part, job_seed, *rest, **options) for part, job_seed in seed.split(latent_image)])

    return prepare_noise


def sampler_per_job(one):
    """The same for what makes a noise sampler, which samplers that add noise at every step ask."""

    def default_noise_sampler(x, seed=None, **options):
        if not isinstance(seed, JobSeeds):
            return one(x, seed=seed, **options)
        samplers = [one(part, seed=job_seed, **options) for part, job_seed in seed.split(x)]
        return lambda sigma, sigma_next: torch.cat([draw(sigma, sigma_next) for draw in samplers])

    return default_noise_sampler


def tree_per_job(one):
    class BrownianTreeNoiseSampler(one):
        def __init__(self, x, sigma_min, sigma_max, seed=None, *rest, **options):
            self.trees = None
            if isinstance(seed, JobSeeds):
                self.trees = [one(part, sigma_min, sigma_max, job_seed, *rest, **options)
                              for part, job_seed in seed.split(x)]
            else:
                super().__init__(x, sigma_min, sigma_max, seed, *rest, **options)

        def __call__(self, sigma, sigma_next):
            if self.trees is None:
                return super().__call__(sigma, sigma_next)
            return torch.cat([tree(sigma, sigma_next) for tree in self.trees])

    return BrownianTreeNoiseSampler


comfy.sample.prepare_noise = per_job(comfy.sample.prepare_noise)
comfy.k_diffusion.sampling.default_noise_sampler = sampler_per_job(comfy.k_diffusion.sampling.default_noise_sampler)
comfy.k_diffusion.sampling.BrownianTreeNoiseSampler = tree_per_job(comfy.k_diffusion.sampling.BrownianTreeNoiseSampler)


def inputs_of(kind, name):
    """name0, name1, …: the first is required."""
    return {f"{name}0": (kind,)}, {f"{name}{i}": (kind,) for i in range(1, JOBS_MAX)}


def take(given, name):
    """name0, name1, … as far as they are given."""
    return [given[f"{name}{i}"] for i in range(len(given))]


class LatentBatch:
    """The latents of all jobs, or the one latent that holds them all, and their seeds."""

    @classmethod
    def INPUT_TYPES(cls):
        first, more = inputs_of("LATENT", "latent")
        return {"required": {"jobs": ("STRING", {"default": "0:1"}), **first}, "optional": more}

    RETURN_TYPES = ("LATENT", "INT")
    RETURN_NAMES = ("latents", "seeds")
    FUNCTION = "join"
    CATEGORY = "comfyd"
    DESCRIPTION = "Joins the latents of jobs for one sampling run. jobs: seed:samples of each, separated by commas."

    def join(self, jobs, **latents):
        jobs = [tuple(int(number) for number in job.split(":")) for job in jobs.split(",")]
        latents = take(latents, "latent")
        if len(latents) != 1 and len(latents) != len(jobs):
            raise ValueError(f"{len(latents)} latents for {len(jobs)} jobs")
        for latent in latents:
            if "noise_mask" in latent or "batch_index" in latent:
                raise ValueError("latents with a mask or a place in another batch cannot be merged")
            if latent["samples"].shape[1:] != latents[0]["samples"].shape[1:]:
                raise ValueError("the pictures of the jobs do not have the same size")
        if len(latents) > 1 and [latent["samples"].shape[0] for latent in latents] != [count for _, count in jobs]:
            raise ValueError(f"the latents do not have the samples of the jobs {jobs}")
        joined = dict(latents[0], samples=torch.cat([latent["samples"] for latent in latents]))
        seeds = JobSeeds(jobs)
        list(seeds.split(joined["samples"]))
        return joined, seeds


class ConditioningBatch:
    """One conditioning that has for each sample what its job has."""

    @classmethod
    def INPUT_TYPES(cls):
        first, more = inputs_of("CONDITIONING", "conditioning")
        return {"required": {"counts": ("STRING", {"default": "1"}), **first}, "optional": more}

    RETURN_TYPES = ("CONDITIONING",)
    FUNCTION = "join"
    CATEGORY = "comfyd"
    DESCRIPTION = "Joins the conditionings of jobs along the batch axis. counts: samples of each, separated by commas."

    def join(self, counts, **conditionings):
        counts = [int(count) for count in counts.split(",")]
        conditionings = take(conditionings, "conditioning")
        if len(conditionings) != len(counts):
            raise ValueError(f"{len(conditionings)} conditionings for {len(counts)} jobs")
        if any(len(conditioning) != 1 for conditioning in conditionings):
            raise ValueError("conditionings of several parts cannot be merged")
        tokens = join_tensors(same_length([conditioning[0][0] for conditioning in conditionings]), counts)
        return [[tokens, join_options([conditioning[0][1] for conditioning in conditionings], counts)]],


CLIP_TOKENS = 77
CLIP_WIDTHS = (768, 1024, 1280, 2048)  # of SD 1, SD 2, the SDXL refiner and SDXL


def same_length(tokens):
    """Shorter ones are repeated, as ComfyUI does it. That changes nothing where pictures only look
    at the tokens of a text, as with CLIP; elsewhere it would, so there it is refused."""
    lengths = {tensor.shape[1] for tensor in tokens}
    if len(lengths) == 1:
        return tokens
    if any(length % CLIP_TOKENS for length in lengths) or tokens[0].shape[2] not in CLIP_WIDTHS:
        raise ValueError("the texts of the jobs do not have the same number of tokens")
    longest = math.lcm(*lengths)
    return [tensor.repeat(1, longest // tensor.shape[1], 1) for tensor in tokens]


def join_tensors(tensors, counts):
    if any(tensor.shape[0] != 1 or tensor.shape[1:] != tensors[0].shape[1:] for tensor in tensors):
        raise ValueError("the conditionings of the jobs do not have the same form")
    return torch.cat([tensor for tensor, count in zip(tensors, counts) for _ in range(count)])


def join_options(options, counts):
    """Pooled outputs are joined; all else has to be plain and the same for all jobs."""
    joined = {}
    for name in {name: None for option in options for name in option}:
        values = [option.get(name) for option in options]
        if name == "pooled_output" and all(torch.is_tensor(value) for value in values):
            joined[name] = join_tensors(values, counts)
        elif all(is_plain(value) and value == values[0] for value in values):
            joined[name] = values[0]
        else:
            raise ValueError(f"the conditionings of the jobs differ in {name!r}, which cannot be merged")
    return joined


def is_plain(value):
    return value is None or isinstance(value, (bool, int, float, str))


class SaveImage:
    """Saves the pictures of one job with its own prompt and workflow, not those of the merged run."""

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {
            "images": ("IMAGE",),
            "prompt": ("STRING", {"default": "{}"}),
            "extra_pnginfo": ("STRING", {"default": "{}"}),
            "preview": ("BOOLEAN", {"default": False}),
        }, "optional": {"filename_prefix": ("STRING", {"default": "ComfyUI"})}}

    RETURN_TYPES = ("IMAGE",)
    RETURN_NAMES = ("images",)
    FUNCTION = "save"
    OUTPUT_NODE = True
    CATEGORY = "comfyd"
    DESCRIPTION = "Saves pictures with a given prompt and workflow inside."

    def save(self, images, prompt, extra_pnginfo, preview, filename_prefix="ComfyUI"):
        saver = nodes.PreviewImage() if preview else nodes.SaveImage()
        saved = saver.save_images(images, filename_prefix, json.loads(prompt), json.loads(extra_pnginfo))
        return {"ui": saved["ui"], "result": (images,)}


NODE_CLASS_MAPPINGS = {
    "ComfydLatentBatch": LatentBatch,
    "ComfydConditioningBatch": ConditioningBatch,
    "ComfydSaveImage": SaveImage,
}
NODE_DISPLAY_NAME_MAPPINGS = {
    "ComfydLatentBatch": "Join Latents of Jobs (comfyd)",
    "ComfydConditioningBatch": "Join Conditionings of Jobs (comfyd)",
    "ComfydSaveImage": "Save Images of a Job (comfyd)",
}
