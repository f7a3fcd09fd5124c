// OpenAI's own client makes a batch of workflows and reads what came of it.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import OpenAI, { toFile } from "openai";
import { startComfyd } from "./servers.mjs";

const picture = (color, node = "SaveImage") => ({
  1: { class_type: "EmptyImage", inputs: { width: 8, height: 8, batch_size: 1, color } },
  2: { class_type: node, inputs: { images: ["1", 0], filename_prefix: "batch" } },
});
const line = (id, body) =>
  JSON.stringify({ custom_id: id, method: "POST", url: "/v2/workflows/execute", body });

let comfyd;
let client;
before(async () => {
  comfyd = await startComfyd();
  client = new OpenAI({ baseURL: `${comfyd.url}/v1`, apiKey: "none" });
});
after(() => comfyd.stop());

const lines = async (id) =>
  (await (await client.files.content(id)).text()).trimEnd().split("\n").map((text) => JSON.parse(text));

test("a batch from its file to its results", async () => {
  const requests = [line("a", { workflow: picture(1) }), line("b", { workflow: picture(2, "NoSuchNode") }),
    line("c", { workflow: picture(3) })];
  const file = await client.files.create({
    file: await toFile(Buffer.from(requests.join("\n")), "requests.jsonl"),
    purpose: "batch",
  });
  assert.equal(file.object, "file");
  assert.equal((await client.files.retrieve(file.id)).filename, "requests.jsonl");
  let batch = await client.batches.create({
    input_file_id: file.id,
    endpoint: "/v2/workflows/execute",
    completion_window: "24h",
    metadata: { order: "7" },
  });
  assert.match(batch.id, /^batch_/);
  while (batch.status === "validating" || batch.status === "in_progress") {
    await new Promise((resolve) => setTimeout(resolve, 20));
    batch = await client.batches.retrieve(batch.id);
  }
  assert.equal(batch.status, "completed");
  assert.deepEqual({ ...batch.request_counts }, { total: 3, completed: 2, failed: 1 });
  assert.deepEqual(batch.metadata, { order: "7" });
  const results = await lines(batch.output_file_id);
  assert.deepEqual(results.map((result) => result.custom_id), ["a", "c"]);
  assert.equal(results[0].response.status_code, 200);
  const made = await fetch(results[0].response.body.outputs[0].url);
  assert.equal(made.headers.get("content-type"), "image/png");
  const [error] = await lines(batch.error_file_id);
  assert.equal(error.custom_id, "b");
  assert.match(error.error.message, /NoSuchNode/);
  const listed = [];
  for await (const one of client.batches.list({ limit: 1 })) listed.push(one.id);
  assert.deepEqual(listed, [batch.id]);
});

test("what is wrong is an error of theirs", async () => {
  const file = await client.files.create({
    file: await toFile(Buffer.from(`${line("a", { workflow: picture(1) })}\n{]\n`), "bad.jsonl"),
    purpose: "batch",
  });
  await assert.rejects(
    client.batches.create({ input_file_id: file.id, endpoint: "/v2/workflows/execute", completion_window: "24h" }),
    (error) => error instanceof OpenAI.BadRequestError && /record 2 \(line 2\)/.test(error.message),
  );
  await assert.rejects(client.batches.retrieve("batch_unknown"), OpenAI.NotFoundError);
  assert.equal((await client.files.delete(file.id)).deleted, true);
  await assert.rejects(client.files.retrieve(file.id), OpenAI.NotFoundError);
});
