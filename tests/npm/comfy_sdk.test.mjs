// The official TypeScript SDK of Comfy API v2, unchanged.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Comfy, InvalidWorkflow, JobFailed, MissingAsset, NotFound } from "@comfyorg/sdk";
import { startComfyd, startDouble } from "./servers.mjs";

let double;
let comfyd;
let client;

before(async () => {
  double = await startDouble();
  comfyd = await startComfyd("--worker", double.url, "--set", "fleet.poll_ms=100");
  process.env.COMFY_BASE_URL = comfyd.url;
  client = new Comfy();
  // Both workers, the engine and the double, are known before the first workflow is checked.
  for (;;) {
    const metrics = await (await fetch(`${comfyd.url}/api/v1/workers/metrics`)).json();
    if (metrics.idle_workers === 2) break;
  }
});

after(async () => {
  await comfyd?.stop();
  await double?.stop();
});

const picture = (width = 32) => ({
  1: { class_type: "EmptyImage", inputs: { width, height: 32, batch_size: 1, color: 255 } },
  2: { class_type: "SaveImage", inputs: { images: ["1", 0], filename_prefix: "sdk" } },
});

const hanging = () => ({
  4: { class_type: "CheckpointLoaderSimple", inputs: { ckpt_name: "sd15.safetensors" } },
  5: { class_type: "EmptyLatentImage", inputs: { width: 64, height: 64, batch_size: 1 } },
  6: { class_type: "CLIPTextEncode", inputs: { clip: ["4", 1], text: "x" } },
  3: {
    class_type: "KSampler",
    inputs: {
      seed: 1, steps: 4, cfg: 8, sampler_name: "euler", scheduler: "normal", denoise: 1, _fault: "hang_interruptible",
      model: ["4", 0], positive: ["6", 0], negative: ["6", 0], latent_image: ["5", 0],
    },
  },
  8: { class_type: "VAEDecode", inputs: { samples: ["3", 0], vae: ["4", 2] } },
  9: { class_type: "SaveImage", inputs: { images: ["8", 0], filename_prefix: "x" } },
});

const isPng = (bytes) => Buffer.from(bytes.slice(1, 4)).toString() === "PNG";

test("runs a workflow and fetches its output", async () => {
  const job = await client.run(client.workflows.fromJson(picture()));
  assert.equal(job.status, "succeeded");
  const [output] = job.getOutputs("2");
  assert.ok(isPng(await output.toBytes()));
  const { workflow, format } = await job.getWorkflow();
  assert.equal(format, "api");
  assert.deepEqual(Object.keys(workflow), ["1", "2"]);
  const again = await client.jobs.get(job.id);
  assert.equal(again.status, "succeeded");
});

test("uploads an asset once and uses it as an input", async () => {
  const made = await client.run(client.workflows.fromJson(picture(48)));
  const bytes = await made.outputs[0].toBytes();
  const load = client.workflows.fromJson({
    1: { class_type: "LoadImage", inputs: { image: "" } },
    2: { class_type: "SaveImage", inputs: { images: ["1", 0], filename_prefix: "copy" } },
  });
  const asset = client.assets.fromBytes(bytes, { filename: "photo.png", contentType: "image/png" });
  load.setInput("1", "image", asset);
  const job = await client.run(load);
  assert.equal(job.status, "succeeded");
  assert.ok(isPng(await job.outputs[0].toBytes()));
  const twin = client.assets.fromBytes(bytes, { filename: "photo.png", contentType: "image/png" });
  await twin.commit();
  await twin.delete();
});

test("follows events to the end", async () => {
  const job = await client.submit(client.workflows.fromJson(picture(64)));
  const kinds = new Set();
  let last;
  for await (const event of job.events()) {
    kinds.add(event.kind);
    last = event;
  }
  assert.ok(kinds.has("statusChange"));
  assert.equal(last.status, "succeeded");
});

test("cancels a running job", async () => {
  const job = await client.submit(client.workflows.fromJson(hanging()));
  while (job.status === "queued") await job.refresh();
  await job.cancel();
  await job.wait(30_000);
  assert.equal(job.status, "canceled");
  await assert.rejects(job.result(), JobFailed);
});

test("gets typed errors", async () => {
  const unknown = picture();
  unknown[1].class_type = "NoSuchNode";
  await assert.rejects(client.submit(client.workflows.fromJson(unknown)), (error) => {
    assert.ok(error instanceof InvalidWorkflow);
    assert.equal(error.details.node_errors["1"][0].reason, "missing_node_type");
    return true;
  });
  const missing = client.workflows.fromJson({
    1: {
      class_type: "LoadImage",
      inputs: { image: { __type: "core/ASSET", info: { id: "00000000-0000-7000-8000-000000000000" } } },
    },
    2: { class_type: "SaveImage", inputs: { images: ["1", 0], filename_prefix: "x" } },
  });
  await assert.rejects(client.submit(missing), MissingAsset);
  await assert.rejects(client.jobs.get("00000000-0000-7000-8000-000000000000"), NotFound);
});
