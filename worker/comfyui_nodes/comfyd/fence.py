"""Keeps out what a leader that was still sends, where several nodes of comfyd share this server.

A prompt that carries `extra_data.comfyd_lead` = {"domain", "epoch"} is refused with the status 409 when this server has
heard of a higher epoch of that domain, and when it has, or had, a prompt of that id. Other prompts pass as before.

POST /comfyd/lead  {"domain", "epoch"}: a new leader says who it is; answered with the same, or refused with 409
"""
from collections import OrderedDict

from aiohttp import web

from server import PromptServer

PROMPTS_MAX = 100_000  # ids that are remembered


def make_error(kind, message, details):
    return {"type": kind, "message": message, "details": details, "extra_info": {}}


def read_lead(value):
    """(domain, epoch), or None."""
    if not isinstance(value, dict):
        return None
    domain, epoch = value.get("domain"), value.get("epoch")
    if not isinstance(domain, str) or not domain or type(epoch) is not int or epoch < 1:
        return None
    return domain, epoch


class Fence:
    def __init__(self):
        self.epochs = {}  # the highest, by domain
        self.known = OrderedDict()  # ids of prompts, the oldest first

    def announce(self, domain, epoch):
        """None, or why not."""
        highest = self.epochs.get(domain, 0)
        if epoch < highest:
            return make_error("comfyd_lower_epoch", "Another node leads",
                              f"epoch {epoch} of the domain {domain} is over: this server has heard of {highest}")
        self.epochs[domain] = epoch
        return None

    def admit(self, domain, epoch, prompt_id):
        """None: the prompt is taken, unless forget() follows. Otherwise why not."""
        refusal = self.announce(domain, epoch)
        if refusal is None and prompt_id in self.known:
            refusal = make_error("comfyd_known_prompt", "The prompt is known",
                                 f"prompt {prompt_id} is here already, or was, and runs only once")
        if refusal is None:
            self.known[prompt_id] = None
            if len(self.known) > PROMPTS_MAX:
                self.known.popitem(last=False)
        return refusal

    def forget(self, prompt_id):
        self.known.pop(prompt_id, None)


fence = Fence()


async def find_lead(request):
    """(domain, epoch, prompt id) of a prompt that is sent under a lead, or None."""
    if request.method != "POST" or request.path not in ("/prompt", "/api/prompt"):
        return None
    try:
        if b"comfyd_lead" not in await request.read():  # aiohttp keeps it for whoever reads next
            return None
        body = await request.json()
        lead = read_lead(body["extra_data"]["comfyd_lead"])
        return (*lead, str(body["prompt_id"])) if lead else None
    except (KeyError, TypeError, ValueError):
        return None  # the server says what is wrong with it


@web.middleware
async def keep_out(request, handler):
    sent = await find_lead(request)
    if sent is None:
        return await handler(request)
    refusal = fence.admit(*sent)
    if refusal is not None:
        return web.json_response({"error": refusal, "node_errors": {}}, status=409)
    # Known from now on: another of the same id may come while this one is checked. Where the client goes away meanwhile
    # nobody can say whether it was queued; then it stays known.
    try:
        response = await handler(request)
    except Exception:
        fence.forget(sent[2])
        raise
    if response.status != 200:
        fence.forget(sent[2])
    return response


@PromptServer.instance.routes.post("/comfyd/lead")
async def post_lead(request):
    lead = read_lead(await request.json())
    if lead is None:
        return web.json_response({"error": "a domain and its epoch are missing"}, status=400)
    refusal = fence.announce(*lead)
    if refusal is not None:
        return web.json_response({"error": refusal}, status=409)
    return web.json_response({"domain": lead[0], "epoch": lead[1]})


# Behind ComfyUI's own, which keep out strangers.
PromptServer.instance.app.middlewares.append(keep_out)
