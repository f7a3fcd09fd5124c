// Clients that were written for ComfyUI itself, unchanged, in front of a fleet of three engines. One of the engines is
// killed while they work.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Client } from "@stable-canvas/comfyui-client";
import { ComfyUIClient } from "comfy-ui-client";
import WebSocket from "ws";
import { startComfyd, startEngine } from "./servers.mjs";

let engines;
let comfyd;

const workersUp = async () => {
  const workers = await (await fetch(`${comfyd.url}/api/v1/workers/metrics`)).json();
  return workers.idle_workers + workers.running_workers;
};

before(async () => {
  engines = await Promise.all([startEngine(), startEngine(), startEngine()]);
  const flags = engines.flatMap((engine) => ["--worker", engine.url]);
  comfyd = await startComfyd("--no-engine", ...flags, "--set", "fleet.poll_ms=100");
  while ((await workersUp()) < 3);
});

after(async () => {
  await comfyd?.stop();
  await Promise.all((engines ?? []).map((engine) => engine.stop()));
});

const picture = (color, side = 32) => ({
  1: { class_type: "EmptyImage", inputs: { width: side, height: side, batch_size: 1, color } },
  2: { class_type: "SaveImage", inputs: { images: ["1", 0], filename_prefix: "client" } },
});

// About a second of work, at the size that the build is told to be quick enough for.
const slowSide = Number(process.env.SLOW_SIDE ?? 1024);
const slowPicture = (color) => ({
  1: { class_type: "EmptyImage", inputs: { width: slowSide, height: slowSide, batch_size: 2, color } },
  2: { class_type: "ImageBlur", inputs: { image: ["1", 0], blur_radius: 31, sigma: 2.0 } },
  3: { class_type: "ImageScale", inputs: { image: ["2", 0], upscale_method: "area", width: 32, height: 32, crop: "disabled" } },
  4: { class_type: "SaveImage", inputs: { images: ["3", 0], filename_prefix: "slow" } },
});

const isPng = (bytes) => Buffer.from(bytes.slice(1, 4)).toString() === "PNG";
const hostOf = (url) => new URL(url).host;

const stableCanvas = async () => {
  const client = new Client({ api_host: hostOf(comfyd.url), WebSocket, fetch });
  client.connect();
  return client;
};

test("@stable-canvas/comfyui-client follows a prompt and gets its picture", async () => {
  const client = await stableCanvas();
  try {
    assert.ok("SaveImage" in (await client.getNodeDefs()));
    assert.ok((await client.getSystemStats()).devices.length >= 1);
    const result = await client.enqueue(picture(255));
    assert.equal(result.images.length, 1);
    const image = result.images[0];
    const bytes = image.type === "buff" ? image.data : await (await fetch(image.data)).arrayBuffer();
    assert.ok(isPng(new Uint8Array(bytes)));
    // The client has the picture from a message that comes before the prompt's end.
    while ((await client.getHistory()).History.length === 0);
  } finally {
    client.close();
  }
});

test("@stable-canvas/comfyui-client polls where it has no socket", async () => {
  const client = new Client({ api_host: hostOf(comfyd.url), WebSocket, fetch });
  try {
    const result = await client.enqueue_polling(picture(254));
    assert.equal(result.images.length, 1);
  } finally {
    client.close();
  }
});

test("comfy-ui-client gets pictures, also of uploads", async () => {
  const client = new ComfyUIClient(hostOf(comfyd.url), "5f0e2c56-4a7e-4b0c-9f57-7d7d2a9d0c11");
  await client.connect();
  try {
    const images = await client.getImages(picture(65280));
    const [first] = images["2"];
    const bytes = Buffer.from(await first.blob.arrayBuffer());
    assert.ok(isPng(bytes));
    const stored = await client.uploadImage(bytes, "mine.png");
    const again = await client.getImages({
      1: { class_type: "LoadImage", inputs: { image: stored.name } },
      2: { class_type: "ImageInvert", inputs: { image: ["1", 0] } },
      3: { class_type: "SaveImage", inputs: { images: ["2", 0], filename_prefix: "inverted" } },
    });
    assert.ok(isPng(Buffer.from(await again["3"][0].blob.arrayBuffer())));
  } finally {
    await client.disconnect();
  }
});

test("a refused prompt is told in ComfyUI's way", async () => {
  const response = await fetch(`${comfyd.url}/prompt`, {
    method: "POST",
    body: JSON.stringify({ prompt: { 1: { class_type: "NoSuchNode", inputs: {} } } }),
  });
  assert.equal(response.status, 400);
  assert.equal((await response.json()).error.type, "missing_node_type");
});

test("prompts survive the death of the engine that runs them", async () => {
  const client = await stableCanvas();
  try {
    const runs = [1, 2, 3].map((color) => client.enqueue(slowPicture(color)));
    // Once all three are at work, one of them dies.
    for (;;) {
      const workers = await (await fetch(`${comfyd.url}/api/v1/workers/metrics`)).json();
      if (workers.running_workers === 3) break;
    }
    engines[0].kill();
    for (const run of runs) {
      const result = await run;
      assert.equal(result.images.length, 2);
    }
  } finally {
    client.close();
  }
});
