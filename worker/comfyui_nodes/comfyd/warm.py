"""A node with which comfyd has models loaded ahead of jobs.

A prompt of the loaders of a workflow and this node runs as any other: ComfyUI keeps what its loaders gave, and this node
brings the models to where sampling would have them. The next prompt with the same loaders finds both.
"""
import comfy.model_management
from comfy.model_patcher import ModelPatcher

INPUTS_MAX = 32


def patcher_of(value):
    """What ComfyUI's memory management knows a MODEL, CLIP, VAE, CLIP_VISION or CONTROL_NET by; None: it knows none."""
    for known in (value, getattr(value, "patcher", None), getattr(value, "control_model_wrapped", None)):
        if isinstance(known, ModelPatcher):
            return known
    return None


class Warm:
    """Brings models to where they are used, and does nothing with them."""

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"loaded0": ("*",)}, "optional": {f"loaded{i}": ("*",) for i in range(1, INPUTS_MAX)}}

    RETURN_TYPES = ()
    FUNCTION = "touch"
    OUTPUT_NODE = True
    CATEGORY = "comfyd"
    DESCRIPTION = "Loads models into memory without sampling."

    @classmethod
    def IS_CHANGED(cls, **loaded):
        return float("nan")  # the models may have had to go since

    def touch(self, **loaded):
        # One after the other, what samples last: where memory is short it is what should be there.
        for value in sorted(loaded.values(), key=lambda value: isinstance(value, ModelPatcher)):
            patcher = patcher_of(value)
            if patcher is not None:
                comfy.model_management.load_models_gpu([patcher])
        return {}


NODE_CLASS_MAPPINGS = {"ComfydWarm": Warm}
NODE_DISPLAY_NAME_MAPPINGS = {"ComfydWarm": "Load Models Ahead (comfyd)"}
