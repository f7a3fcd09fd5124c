"""What a ComfyUI machine has for comfyd: nodes with which several jobs share one sampling run,
routes that tell what this server would say to a prompt, and a fence against leaders that were."""
from . import fence, routes  # noqa: F401  register themselves
from .batch import NODE_CLASS_MAPPINGS, NODE_DISPLAY_NAME_MAPPINGS

__all__ = ["NODE_CLASS_MAPPINGS", "NODE_DISPLAY_NAME_MAPPINGS"]
