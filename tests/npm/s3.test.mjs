// What comfyd writes into an S3 service (Ceph's gateway), read back by Amazon's own client.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import {
  CreateBucketCommand, GetObjectCommand, HeadObjectCommand, ListMultipartUploadsCommand, ListObjectsV2Command, S3Client,
} from "@aws-sdk/client-s3";
import { getSignedUrl } from "@aws-sdk/s3-request-presigner";
import { s3Keys, startComfyd, startDouble, startRadosgw } from "./servers.mjs";

const partBytes = 8 * 1024 * 1024; // of comfyd's uploads
const largeBytes = 2 * partBytes + 1_234_567; // two whole parts and a rest
const stored = "of-comfyd";
const own = "of-a-client";

const folder = mkdtempSync(join(tmpdir(), "comfyd-s3-"));
let service;
let double;
let comfyd;
let s3;

before(async () => {
  service = await startRadosgw();
  double = await startDouble("--output-bytes", String(largeBytes));
  s3 = new S3Client({
    endpoint: service.url, region: "us-east-1", forcePathStyle: true, credentials: s3Keys,
    requestChecksumCalculation: "WHEN_REQUIRED", responseChecksumValidation: "WHEN_REQUIRED",
  });
  for (const Bucket of [stored, own]) await s3.send(new CreateBucketCommand({ Bucket }));
  const config = join(folder, "comfyd.yaml");
  writeFileSync(config, `
stores:
  - {name: main, provider: s3, bucket: ${stored}, prefix: out, endpoint: "${service.url}",
     access_key: ${s3Keys.accessKeyId}, secret_key: "${s3Keys.secretAccessKey}"}
results: {store: main, allow_private_buckets: true}
`);
  comfyd = await startComfyd("--config", config, "--worker", double.url, "--set", "fleet.poll_ms=100");
});

after(async () => {
  await comfyd?.stop();
  await double?.stop();
  await service?.stop();
  rmSync(folder, { recursive: true, force: true });
});

// Only the double has such nodes.
const large = (text) => ({
  4: { class_type: "CheckpointLoaderSimple", inputs: { ckpt_name: "sd15.safetensors" } },
  5: { class_type: "EmptyLatentImage", inputs: { width: 64, height: 64, batch_size: 1 } },
  6: { class_type: "CLIPTextEncode", inputs: { clip: ["4", 1], text } },
  3: {
    class_type: "KSampler",
    inputs: {
      seed: 1, steps: 1, cfg: 8, sampler_name: "euler", scheduler: "normal", denoise: 1,
      model: ["4", 0], positive: ["6", 0], negative: ["6", 0], latent_image: ["5", 0],
    },
  },
  8: { class_type: "VAEDecode", inputs: { samples: ["3", 0], vae: ["4", 2] } },
  9: { class_type: "SaveImage", inputs: { images: ["8", 0], filename_prefix: "large" } },
});

const sha = (bytes) => createHash("sha256").update(bytes).digest("hex");
const bytesOf = async (command) => Buffer.from(await (await s3.send(command)).Body.transformToByteArray());
const objectsIn = async (Bucket) => (await s3.send(new ListObjectsV2Command({ Bucket }))).Contents ?? [];
const fetched = async (url, headers = {}) => {
  const answer = await fetch(url, { headers });
  return { status: answer.status, bytes: Buffer.from(await answer.arrayBuffer()), headers: answer.headers };
};

async function until(look) {
  for (;;) {
    const found = await look();
    if (found) return found;
    await sleep(100);
  }
}

// The job, when its output is in the bucket.
async function run(workflow) {
  const answer = await until(async () => {
    const sent = await fetch(`${comfyd.url}/api/v2/jobs`, { method: "POST", body: JSON.stringify({ workflow }) });
    return sent.status === 201 ? sent.json() : null; // until the worker is known
  });
  return until(async () => {
    const job = await (await fetch(`${comfyd.url}/api/v2/jobs/${answer.id}`)).json();
    assert.notEqual(job.status, "failed", JSON.stringify(job.error));
    return job.storage === "stored" ? job : null;
  });
}

test("a large output arrives in parts, whole, and by link", async () => {
  const job = await run(large("whole"));
  const [output] = job.outputs;
  assert.ok(output.size_bytes >= largeBytes);
  const [object] = await objectsIn(stored);
  assert.match(object.Key, /^out\/[0-9a-f]{2}\//);
  assert.equal(object.Size, output.size_bytes);

  const at = { Bucket: stored, Key: object.Key };
  const head = await s3.send(new HeadObjectCommand(at));
  assert.match(head.ETag, /-3"$/, "three parts");
  assert.equal(head.ContentType, "image/png");
  const open = await s3.send(new ListMultipartUploadsCommand({ Bucket: stored }));
  assert.deepEqual(open.Uploads ?? [], []);
  const whole = await bytesOf(new GetObjectCommand(at));
  const range = `bytes=${partBytes - 5}-${partBytes + 5}`; // over the seam of two parts
  assert.deepEqual(await bytesOf(new GetObjectCommand({ ...at, Range: range })), whole.subarray(partBytes - 5, partBytes + 6));

  const here = await fetch(`${comfyd.url}/v2/assets/${output.id}/content`, { redirect: "manual" });
  assert.equal(here.status, 302);
  const link = here.headers.get("location");
  const linked = await fetched(link);
  assert.equal(linked.status, 200);
  assert.equal(sha(linked.bytes), sha(whole));
  assert.match(linked.headers.get("content-disposition"), /^inline; filename="large_/);
  const part = await fetched(link, { Range: range });
  assert.equal(part.status, 206);
  assert.deepEqual(part.bytes, whole.subarray(partBytes - 5, partBytes + 6));
  assert.equal((await fetched(link.replace("inline", "attachment"))).status, 403, "a changed link is refused");
  const theirs = await getSignedUrl(s3, new GetObjectCommand(at), { expiresIn: 60 });
  assert.equal(sha((await fetched(theirs)).bytes), sha(whole));
});

test("a client's own bucket gets the outputs of its job", async () => {
  const request = {
    input: { workflow: large("own") },
    s3Config: {
      bucketName: own, endpointUrl: service.url, accessId: s3Keys.accessKeyId, accessSecret: s3Keys.secretAccessKey,
    },
  };
  const answer = await (await fetch(`${comfyd.url}/runpod/v2/any/runsync?wait=120000`, {
    method: "POST", body: JSON.stringify(request),
  })).json();
  assert.equal(answer.status, "COMPLETED", JSON.stringify(answer));
  const [image] = answer.output.images;
  assert.equal(image.type, "s3_url");
  assert.ok(image.data.startsWith(`${service.url}/${own}/${answer.id}/`), image.data);
  assert.equal(answer.output.errors, undefined);
  const [object] = await objectsIn(own);
  assert.equal(object.Key, `${answer.id}/${image.filename}`);
  const whole = await bytesOf(new GetObjectCommand({ Bucket: own, Key: object.Key }));
  assert.ok(whole.length >= largeBytes);
  assert.equal(sha((await fetched(image.data)).bytes), sha(whole));
});
