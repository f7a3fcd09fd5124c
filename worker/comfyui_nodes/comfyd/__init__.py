"""What a ComfyUI machine has for comfyd: nodes with which several jobs share one sampling run, and
routes that tell what this server would say to a prompt."""
from . import routes  # noqa: F401  registers itself
from .batch import NODE_CLASS_MAPPINGS, NODE_DISPLAY_NAME_MAPPINGS

__all__ = ["NODE_CLASS_MAPPINGS", "NODE_DISPLAY_NAME_MAPPINGS"]
