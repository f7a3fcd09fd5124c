// Webhooks over https to a receiver with a private certificate authority, verified as a client would.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHmac } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { Webhook } from "standardwebhooks";
import { startComfyd } from "./servers.mjs";

const folder = mkdtempSync(join(tmpdir(), "comfyd-https-"));
const certificate = join(folder, "cert.pem");
const key = join(folder, "key.pem");
execFileSync("openssl", [
  "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
  "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost", "-keyout", key, "-out", certificate,
], { stdio: "ignore" });
after(() => rmSync(folder, { recursive: true, force: true }));

const workflow = {
  1: { class_type: "EmptyImage", inputs: { width: 8, height: 8, batch_size: 1, color: 1 } },
  2: { class_type: "SaveImage", inputs: { images: ["1", 0], filename_prefix: "hook" } },
};

// Resolves with the first request that arrives.
async function receiver() {
  let arrived;
  const first = new Promise((resolve) => (arrived = resolve));
  const server = createServer({ cert: readFileSync(certificate), key: readFileSync(key) }, (request, response) => {
    const pieces = [];
    request.on("data", (piece) => pieces.push(piece));
    request.on("end", () => {
      response.end("thanks");
      arrived({ headers: request.headers, body: Buffer.concat(pieces).toString() });
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { first, url: `https://127.0.0.1:${server.address().port}/hook`, close: () => server.close() };
}

async function submit(url, hook) {
  const answer = await fetch(`${url}/v2/workflows/execute`, {
    method: "POST",
    body: JSON.stringify({ workflow, webhook_config: { url: hook, secret: "s3cret" } }),
  });
  assert.equal(answer.status, 202);
  return (await answer.json()).execution_id;
}

test("a trusted receiver gets a signed message", async () => {
  const hook = await receiver();
  const comfyd = await startComfyd(
    "--set", "webhooks.allow_private_addresses=true", "--set", `webhooks.ca_file=${certificate}`,
  );
  try {
    const id = await submit(comfyd.url, hook.url);
    const { headers, body } = await hook.first;
    assert.equal(headers["x-execution-id"], id);
    const hmac = (text, encoding) => createHmac("sha256", "s3cret").update(text).digest(encoding);
    assert.equal(headers["x-signature"], `sha256=${hmac(body, "hex")}`);
    const signed = `${headers["webhook-id"]}.${headers["webhook-timestamp"]}.${body}`;
    assert.equal(headers["webhook-signature"], `v1,${hmac(signed, "base64")}`);
    assert.equal(JSON.parse(body).status, "completed");
  } finally {
    await comfyd.stop();
    hook.close();
  }
});

test("a receiver with an unknown certificate gets nothing", async () => {
  const hook = await receiver();
  let told = false;
  hook.first.then(() => (told = true));
  const comfyd = await startComfyd(
    "--set", "webhooks.allow_private_addresses=true", "--set", "webhooks.first_retry_ms=20",
  );
  try {
    await submit(comfyd.url, hook.url);
    // Refused attempts are counted; a few of them are proof enough.
    for (;;) {
      const metrics = await (await fetch(`${comfyd.url}/metrics`)).text();
      if (Number(metrics.match(/^comfyd_webhooks_failed_attempts (\d+)/m)?.[1] ?? 0) >= 2) break;
    }
    assert.equal(told, false);
  } finally {
    await comfyd.stop();
    hook.close();
  }
});

const eventNames = [
  "execution.queued", "execution.started", "execution.progress", "execution.completed",
  "execution.failed", "execution.cancelled", "execution.warning",
];

// Collects what arrives; `until` resolves once there are so many.
async function collector() {
  const messages = [];
  let waiting = () => {};
  const server = createServer({ cert: readFileSync(certificate), key: readFileSync(key) }, (request, response) => {
    const pieces = [];
    request.on("data", (piece) => pieces.push(piece));
    request.on("end", () => {
      response.end();
      messages.push({ headers: request.headers, body: Buffer.concat(pieces).toString() });
      waiting();
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const until = (count) =>
    new Promise((resolve) => {
      waiting = () => messages.length >= count && resolve([...messages]);
      waiting();
    });
  return { until, url: `https://127.0.0.1:${server.address().port}/hook`, close: () => server.close() };
}

async function call(url, path, body, method = "POST") {
  const answer = await fetch(`${url}/v2/webhooks/${path}`, { method, body: JSON.stringify(body) });
  assert.ok(answer.ok, `${path} ${answer.status}`);
  return answer.json();
}

test("the library of Standard Webhooks verifies what endpoints are sent, through a rotation", async () => {
  const hook = await collector();
  const comfyd = await startComfyd(
    "--set", "webhooks.allow_private_addresses=true", "--set", `webhooks.ca_file=${certificate}`,
  );
  try {
    const made = await call(comfyd.url, "endpoints", {
      url: hook.url, events: eventNames, headers: { "X-Mine": "yes" },
    });
    await fetch(`${comfyd.url}/v2/workflows/execute`, {
      method: "POST",
      body: JSON.stringify({ workflow, metadata: { "ä": "naïve ☃ 😀", ratio: 0.1 } }),
    });
    let told = await hook.until(3);
    while (!told.some(({ body }) => JSON.parse(body).type === "execution.completed")) {
      told = await hook.until(told.length + 1); // a slow machine tells of progress, too
    }
    const secret = new Webhook(made.secret);
    for (const { headers, body } of told) {
      const message = secret.verify(body, headers);
      assert.ok(eventNames.includes(message.type));
      assert.throws(() => secret.verify(body + " ", headers));
    }
    const byEvent = told.map(({ body }) => JSON.parse(body).type);
    assert.equal(byEvent[0], "execution.queued");
    assert.equal(byEvent.at(-1), "execution.completed");

    const rotated = await call(comfyd.url, `endpoints/${made.id}/rotate`, {});
    assert.notEqual(rotated.secret, made.secret);
    for (const event of eventNames) {
      const sample = await call(comfyd.url, `endpoints/${made.id}/test`, { event });
      assert.equal(sample.delivered, true);
    }
    const samples = (await hook.until(told.length + eventNames.length)).slice(-eventNames.length);
    for (const { headers, body } of samples) {
      secret.verify(body, headers);
      new Webhook(rotated.secret).verify(body, headers);
      assert.throws(() => new Webhook("whsec_" + Buffer.from("another").toString("base64")).verify(body, headers));
    }
    assert.deepEqual(samples.map(({ body }) => JSON.parse(body).type), eventNames);
  } finally {
    await comfyd.stop();
    hook.close();
  }
});

test("a text as secret verifies with the library, and so do bodies of CloudEvents", async () => {
  const hook = await collector();
  const comfyd = await startComfyd(
    "--set", "webhooks.allow_private_addresses=true", "--set", `webhooks.ca_file=${certificate}`,
  );
  try {
    const made = await call(comfyd.url, "endpoints", {
      url: hook.url, secret: "just a text", body: "cloudevents", method: "PUT",
    });
    await call(comfyd.url, `endpoints/${made.id}/test`, {});
    const [{ headers, body }] = await hook.until(1);
    const event = new Webhook("just a text", { format: "raw" }).verify(body, headers);
    new Webhook(made.secret).verify(body, headers);
    assert.equal(headers["content-type"], "application/cloudevents+json; charset=UTF-8");
    assert.equal(event.specversion, "1.0");
    assert.equal(event.id, headers["webhook-id"]);
    assert.equal(event.type, "execution.completed");
    assert.equal(event.data.execution_id, event.subject);
    assert.ok(!Number.isNaN(Date.parse(event.time)));
  } finally {
    await comfyd.stop();
    hook.close();
  }
});

test("where the operator allows it, a client may do without verification", async () => {
  const hook = await collector();
  const comfyd = await startComfyd(
    "--set", "webhooks.allow_private_addresses=true", "--set", "webhooks.allow_unverified_tls=true",
  );
  try {
    const strict = await call(comfyd.url, "endpoints", { url: hook.url });
    assert.equal((await call(comfyd.url, `endpoints/${strict.id}/test`, {})).delivered, false);
    const lax = await call(comfyd.url, "endpoints", { url: hook.url, verify_ssl: false });
    assert.equal((await call(comfyd.url, `endpoints/${lax.id}/test`, {})).delivered, true);
  } finally {
    await comfyd.stop();
    hook.close();
  }
});

test("the end of a batch is signed for endpoints and for its own webhook", async () => {
  const hook = await collector();
  const comfyd = await startComfyd(
    "--set", "webhooks.allow_private_addresses=true", "--set", `webhooks.ca_file=${certificate}`,
  );
  try {
    const made = await call(comfyd.url, "endpoints", { url: `${hook.url}/endpoint`, events: ["batch.completed"] });
    const answer = await fetch(`${comfyd.url}/v2/batches`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({
        workflow, items: [{ custom_id: "ä ☃", params: { "1.color": 7 } }, { "1.color": 8 }],
        webhook_config: { url: hook.url, secret: "s3cret" },
      }),
    });
    assert.equal(answer.status, 201);
    const { id } = await answer.json();
    const ids = new Set();
    for (const { headers, body } of await hook.until(2)) {
      ids.add(headers["webhook-id"]);
      const message = JSON.parse(body);
      assert.equal(message.type, "batch.completed");
      assert.equal(message.batch_id, id);
      assert.equal(message.data.request_counts.completed, 2);
      if (headers["x-signature"]) {
        assert.equal(headers["x-signature"], `sha256=${createHmac("sha256", "s3cret").update(body).digest("hex")}`);
      } else {
        assert.deepEqual(new Webhook(made.secret).verify(body, headers), message);
      }
    }
    assert.equal(ids.size, 1, "one event has one id");
  } finally {
    await comfyd.stop();
    hook.close();
  }
});
