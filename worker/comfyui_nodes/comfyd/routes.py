"""Routes beside ComfyUI's own, with which comfyd judges a prompt before it queues it.

GET  /comfyd/classes   what /object_info leaves out: which classes check their inputs themselves
POST /comfyd/validate  the body of POST /prompt; answers as that would, and queues nothing

They can be reached by whoever can reach POST /prompt, and do less than it.
"""
import inspect
import uuid

from aiohttp import web

import execution
import nodes
from server import PromptServer

routes = PromptServer.instance.routes


def own_function(node, name, name_v3):
    """The function of that name that the class itself has, in either of ComfyUI's node interfaces; None: it has none."""
    if hasattr(node, "GET_BASE_CLASS"):
        return execution.first_real_override(node, name_v3)
    return getattr(node, name, None)


def describe_check(check):
    taken = inspect.getfullargspec(check)
    return {"inputs": taken.args, "all_inputs": taken.varkw is not None, "link_types": "input_types" in taken.args}


def describe_classes():
    own_checks, changing = {}, []
    for name, node in nodes.NODE_CLASS_MAPPINGS.items():
        check = own_function(node, "VALIDATE_INPUTS", "validate_inputs")
        if check is not None:
            own_checks[name] = describe_check(check)
        if own_function(node, "IS_CHANGED", "fingerprint_inputs") is not None:
            changing.append(name)
    return {"own_checks": own_checks, "changing": changing}


async def judge(request):
    """As POST /prompt does it: (accepted, error, outputs, node_errors)."""
    request = PromptServer.instance.trigger_on_prompt(request)
    replacer = getattr(PromptServer.instance, "node_replace_manager", None)  # since 0.14
    if replacer is not None:
        replacer.apply_replacements(request["prompt"])
    arguments = [str(uuid.uuid4()), request["prompt"], request.get("partial_execution_targets")]
    # Servers of before 0.3.48 take fewer of them, the oldest the prompt alone.
    count = len(inspect.signature(execution.validate_prompt).parameters)
    verdict = execution.validate_prompt(*(arguments[1:2] if count == 1 else arguments[:count]))
    return await verdict if inspect.isawaitable(verdict) else verdict


@routes.get("/comfyd/classes")
async def get_classes(request):
    return web.json_response(describe_classes())


@routes.post("/comfyd/validate")
async def post_validate(request):
    accepted, error, outputs, node_errors = (await judge(await request.json()))[:4]
    if not accepted:
        return web.json_response({"error": error, "node_errors": node_errors}, status=400)
    return web.json_response({"outputs": outputs, "node_errors": node_errors})
