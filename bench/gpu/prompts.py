"""The prompts that are measured: text to image for one job, and for several jobs at once as comfyd merges them."""
import json


def alone(job, options):
    """job: (text, seed)."""
    text, seed = job
    return {
        "3": {"class_type": "KSampler", "inputs": {
            "seed": seed, "steps": options.steps, "cfg": options.cfg, "sampler_name": options.sampler,
            "scheduler": options.scheduler, "denoise": 1.0, "model": ["4", 0], "positive": ["6", 0],
            "negative": ["7", 0], "latent_image": ["5", 0]}},
        "4": {"class_type": "CheckpointLoaderSimple", "inputs": {"ckpt_name": options.checkpoint}},
        "5": {"class_type": "EmptyLatentImage", "inputs": {
            "width": options.width, "height": options.height, "batch_size": 1}},
        "6": {"class_type": "CLIPTextEncode", "inputs": {"text": text, "clip": ["4", 1]}},
        "7": {"class_type": "CLIPTextEncode", "inputs": {"text": "text, watermark", "clip": ["4", 1]}},
        "8": {"class_type": "VAEDecode", "inputs": {"samples": ["3", 0], "vae": ["4", 2]}},
        "9": {"class_type": "SaveImage", "inputs": {"images": ["8", 0], "filename_prefix": "comfyd-bench"}},
    }


def merged(jobs, options):
    """The outputs of job i come from the node "save{i}"."""
    prompt = alone(jobs[0], options)
    del prompt["6"], prompt["9"]
    prompt["latents"] = {"class_type": "ComfydLatentBatch", "inputs": {
        "jobs": ",".join(f"{seed}:1" for _, seed in jobs)}}
    prompt["texts"] = {"class_type": "ComfydConditioningBatch", "inputs": {"counts": ",".join("1" for _ in jobs)}}
    prompt["3"]["inputs"].update(seed=["latents", 1], latent_image=["latents", 0], positive=["texts", 0])
    for i, job in enumerate(jobs):
        prompt["latents"]["inputs"][f"latent{i}"] = ["5", 0]
        prompt[f"text{i}"] = {"class_type": "CLIPTextEncode", "inputs": {"text": job[0], "clip": ["4", 1]}}
        prompt["texts"]["inputs"][f"conditioning{i}"] = [f"text{i}", 0]
        prompt[f"part{i}"] = {"class_type": "ImageFromBatch", "inputs": {
            "image": ["8", 0], "batch_index": i, "length": 1}}
        prompt[f"save{i}"] = {"class_type": "ComfydSaveImage", "inputs": {
            "images": [f"part{i}", 0], "filename_prefix": "comfyd-bench", "preview": False,
            "prompt": json.dumps(alone(job, options)), "extra_pnginfo": "{}"}}
    return prompt
