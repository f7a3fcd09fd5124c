"""What a ComfyUI machine has for comfyd: nodes with which several jobs share one sampling run and with which models are
loaded ahead of jobs, routes that tell what this server would say to a prompt, and a fence against leaders that were."""
from . import batch, fence, routes, warm  # noqa: F401  some register themselves

NODE_CLASS_MAPPINGS = {**batch.NODE_CLASS_MAPPINGS, **warm.NODE_CLASS_MAPPINGS}
NODE_DISPLAY_NAME_MAPPINGS = {**batch.NODE_DISPLAY_NAME_MAPPINGS, **warm.NODE_DISPLAY_NAME_MAPPINGS}

__all__ = ["NODE_CLASS_MAPPINGS", "NODE_DISPLAY_NAME_MAPPINGS"]
