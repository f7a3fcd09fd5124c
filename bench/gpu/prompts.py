"""The prompts that are measured: text to image for one job, and for several jobs at once as comfyd merges them."""
import json

# What is measured where nothing else is asked for. cfg of flux is the guidance that is given to the model.
DEFAULTS = {
    "sd15": {"width": 512, "height": 512, "cfg": 8.0, "scheduler": "normal"},
    "sdxl": {"width": 1024, "height": 1024, "cfg": 8.0, "scheduler": "normal"},
    "sd3": {"width": 1024, "height": 1024, "cfg": 4.5, "scheduler": "sgm_uniform"},
    "flux": {"width": 1024, "height": 1024, "cfg": 3.5, "scheduler": "simple"},
}
TEXT_ENCODER_TYPES = {"sd15": "stable_diffusion"}  # for the others ComfyUI names it as it is named here


def node(class_type, **inputs):
    return {"class_type": class_type, "inputs": inputs}


def alone(job, options, pictures=1):
    """job: (text, seed)."""
    text, seed = job
    prompt, model, clip, vae = loaders(options)
    if options.family == "sd3":
        prompt["14"] = node("ModelSamplingSD3", model=model, shift=3.0)
        model = ["14", 0]
    empty = "EmptySD3LatentImage" if options.family in ("sd3", "flux") else "EmptyLatentImage"
    prompt["5"] = node(empty, width=options.width, height=options.height, batch_size=pictures)
    prompt["6"] = node("CLIPTextEncode", text=text, clip=clip)
    if options.family == "flux":
        prompt["15"] = node("FluxGuidance", conditioning=["6", 0], guidance=options.cfg)
        prompt["16"] = node("BasicGuider", model=model, conditioning=["15", 0])
        prompt["17"] = node("RandomNoise", noise_seed=seed)
        prompt["18"] = node("KSamplerSelect", sampler_name=options.sampler)
        prompt["19"] = node("BasicScheduler", model=model, scheduler=options.scheduler, steps=options.steps,
                            denoise=1.0)
        prompt["3"] = node("SamplerCustomAdvanced", noise=["17", 0], guider=["16", 0], sampler=["18", 0],
                           sigmas=["19", 0], latent_image=["5", 0])
    else:
        prompt["7"] = node("CLIPTextEncode", text="text, watermark", clip=clip)
        prompt["3"] = node("KSampler", seed=seed, steps=options.steps, cfg=options.cfg, sampler_name=options.sampler,
                           scheduler=options.scheduler, denoise=1.0, model=model, positive=["6", 0], negative=["7", 0],
                           latent_image=["5", 0])
    prompt["8"] = node("VAEDecode", samples=["3", 0], vae=vae)
    prompt["9"] = node("SaveImage", images=["8", 0], filename_prefix="comfyd-bench")
    return prompt


def loaders(options):
    """(nodes, model, clip, vae): out of one checkpoint, or what is named of them out of files of their own."""
    nodes = {}
    model, clip, vae = ["4", 0], ["4", 1], ["4", 2]
    if options.vae:
        nodes["4"] = node("UNETLoader", unet_name=options.checkpoint, weight_dtype="default")
        nodes["11"] = node("VAELoader", vae_name=options.vae)
        vae = ["11", 0]
    else:
        nodes["4"] = node("CheckpointLoaderSimple", ckpt_name=options.checkpoint)
    names = options.text_encoders
    kind = TEXT_ENCODER_TYPES.get(options.family, options.family)
    if names:
        clip = ["10", 0]
    if len(names) == 1:
        nodes["10"] = node("CLIPLoader", clip_name=names[0], type=kind)
    elif len(names) == 2:
        nodes["10"] = node("DualCLIPLoader", clip_name1=names[0], clip_name2=names[1], type=kind)
    elif len(names) == 3:
        nodes["10"] = node("TripleCLIPLoader", clip_name1=names[0], clip_name2=names[1], clip_name3=names[2])
    return nodes, model, clip, vae


def merged(jobs, options):
    """The outputs of job i come from the node "save{i}"."""
    prompt = alone(jobs[0], options)
    flux = options.family == "flux"
    texts = ["6", "15"] if flux else ["6"]  # each job has its own; the last one is joined
    for name in (*texts, "9"):
        del prompt[name]
    prompt["latents"] = node("ComfydLatentBatch", jobs=",".join(f"{seed}:1" for _, seed in jobs))
    prompt["texts"] = node("ComfydConditioningBatch", counts=",".join("1" for _ in jobs))
    prompt["3"]["inputs"]["latent_image"] = ["latents", 0]
    prompt["17" if flux else "3"]["inputs"]["noise_seed" if flux else "seed"] = ["latents", 1]
    prompt["16" if flux else "3"]["inputs"]["conditioning" if flux else "positive"] = ["texts", 0]
    for i, job in enumerate(jobs):
        own = alone(job, options)
        prompt["latents"]["inputs"][f"latent{i}"] = ["5", 0]
        for name in texts:
            inputs = {key: [f"{value[0]}-{i}", value[1]] if isinstance(value, list) and value[0] in texts else value
                      for key, value in own[name]["inputs"].items()}
            prompt[f"{name}-{i}"] = node(own[name]["class_type"], **inputs)
        prompt["texts"]["inputs"][f"conditioning{i}"] = [f"{texts[-1]}-{i}", 0]
        prompt[f"part{i}"] = node("ImageFromBatch", image=["8", 0], batch_index=i, length=1)
        prompt[f"save{i}"] = node("ComfydSaveImage", images=[f"part{i}", 0], filename_prefix="comfyd-bench",
                                  preview=False, prompt=json.dumps(own), extra_pnginfo="{}")
    return prompt
