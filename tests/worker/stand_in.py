"""Stands in for torch, aiohttp and ComfyUI where only what the node pack itself does is tested."""
import json
import sys
import types


class Tensor:
    """Samples along the first axis; each is a list of rows, or one value that stands for all of it."""

    def __init__(self, samples, shape):
        self.samples, self.shape = list(samples), tuple(shape)
        assert len(self.samples) == self.shape[0]

    def __getitem__(self, part):
        samples = self.samples[part]
        return Tensor(samples, (len(samples), *self.shape[1:]))

    def repeat(self, batch, rows, width):
        assert batch == 1 and width == 1
        return Tensor([sample * rows for sample in self.samples],
                      (self.shape[0], self.shape[1] * rows, self.shape[2]))


def cat(tensors):
    if any(tensor.shape[1:] != tensors[0].shape[1:] for tensor in tensors):
        raise RuntimeError("Sizes of tensors must match")
    samples = [sample for tensor in tensors for sample in tensor.samples]
    return Tensor(samples, (len(samples), *tensors[0].shape[1:]))


def tokens(text, length, width=768):
    """One text: its rows carry the text and their place."""
    return Tensor([[f"{text}{row}" for row in range(length)]], (1, length, width))


def latent(name, count=1, size=64):
    return {"samples": Tensor([f"{name}{i}" for i in range(count)], (count, 4, size, size))}


def prepare_noise(latent_image, seed, noise_inds=None):
    if seed >= 1 << 64:
        raise RuntimeError("Overflow when unpacking long")
    return Tensor([f"noise {seed}/{i}" for i in range(latent_image.shape[0])], latent_image.shape)


def default_noise_sampler(x, seed=None):
    return lambda sigma, sigma_next: Tensor([f"step {seed}/{i}" for i in range(x.shape[0])], x.shape)


class BrownianTreeNoiseSampler:
    def __init__(self, x, sigma_min, sigma_max, seed=None, transform=None, cpu=False):
        self.x, self.seed, self.cpu = x, seed, cpu

    def __call__(self, sigma, sigma_next):
        return Tensor([f"tree {self.seed}/{i} {self.cpu}" for i in range(self.x.shape[0])], self.x.shape)


class ModelPatcher:
    """A model as ComfyUI's memory management knows it."""

    in_memory = []  # as they were brought there

    def __init__(self, name):
        self.name = name


def load_models_gpu(models, memory_required=0):
    ModelPatcher.in_memory += [model.name for model in models]


class SaveImage:
    saved = []
    kind = "output"

    def save_images(self, images, filename_prefix="ComfyUI", prompt=None, extra_pnginfo=None):
        SaveImage.saved.append((self.kind, images.samples, filename_prefix, prompt, extra_pnginfo))
        return {"ui": {"images": [{"filename": filename_prefix, "type": self.kind}]}}


class PreviewImage(SaveImage):
    kind = "temp"


class Routes:
    """Keeps what is registered, by method and path."""

    def __init__(self):
        self.handlers = {}

    def add(self, method, path):
        def keep(handler):
            self.handlers[method, path] = handler
            return handler

        return keep

    def get(self, path):
        return self.add("GET", path)

    def post(self, path):
        return self.add("POST", path)


class Server:
    """The part of ComfyUI's PromptServer that custom nodes may use."""

    def __init__(self):
        self.routes = Routes()
        self.app = types.SimpleNamespace(middlewares=[])
        self.on_prompt_handlers = []

    def trigger_on_prompt(self, request):
        for handler in self.on_prompt_handlers:
            request = handler(request)
        return request


class Request:
    def __init__(self, body=None, method="POST", path="", text=None):
        self.body, self.method, self.path = body, method, path
        self.text = json.dumps(body) if text is None else text

    async def read(self):
        return self.text.encode()

    async def json(self):
        return self.body if self.body is not None else json.loads(self.text)


class Response(tuple):
    """Status and body."""

    @property
    def status(self):
        return self[0]


def json_response(body, status=200):
    return Response((status, body))


def first_real_override(node, name):
    return getattr(node, name) if name in vars(node) else None


def install():
    def module(name, **members):
        made = sys.modules[name] = types.ModuleType(name)
        made.__dict__.update(members)
        return made

    module("torch", cat=cat, is_tensor=lambda value: isinstance(value, Tensor))
    comfy = module("comfy")
    comfy.sample = module("comfy.sample", prepare_noise=prepare_noise)
    comfy.k_diffusion = module("comfy.k_diffusion")
    comfy.k_diffusion.sampling = module("comfy.k_diffusion.sampling", default_noise_sampler=default_noise_sampler,
                                        BrownianTreeNoiseSampler=BrownianTreeNoiseSampler)
    comfy.model_management = module("comfy.model_management", load_models_gpu=load_models_gpu)
    comfy.model_patcher = module("comfy.model_patcher", ModelPatcher=ModelPatcher)
    module("nodes", SaveImage=SaveImage, PreviewImage=PreviewImage, NODE_CLASS_MAPPINGS={})
    module("aiohttp").web = module("aiohttp.web", json_response=json_response, middleware=lambda handler: handler)
    module("server", PromptServer=types.SimpleNamespace(instance=Server()))
    module("execution", first_real_override=first_real_override)
