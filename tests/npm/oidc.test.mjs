// Access tokens of a real OpenID provider, signed in every way that comfyd takes from an issuer.
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import Provider from "oidc-provider";
import { startComfyd } from "./servers.mjs";

const KINDS = {
  RS256: ["rsa", { modulusLength: 2048 }],
  ES256: ["ec", { namedCurve: "P-256" }],
  ES384: ["ec", { namedCurve: "P-384" }],
  ES512: ["ec", { namedCurve: "P-521" }],
  EdDSA: ["ed25519", {}],
};
const RESOURCES = Object.keys(KINDS);

function jwks() {
  return {
    keys: RESOURCES.map((alg) => {
      const { privateKey } = generateKeyPairSync(...KINDS[alg]);
      return { ...privateKey.export({ format: "jwk" }), alg, use: "sig", kid: `key-of-${alg}` };
    }),
  };
}

let issuer, server, comfyd;

before(async () => {
  let handle;
  server = createServer((request, response) => handle(request, response));
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    clients: [{
      client_id: "render-farm", client_secret: "s3cret-s3cret", redirect_uris: [], response_types: [],
      grant_types: ["client_credentials"],
    }],
    jwks: jwks(),
    enabledJWA: { idTokenSigningAlgValues: RESOURCES },
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (context, resource) => ({
          scope: "jobs:read jobs:write",
          audience: resource.endsWith("/other") ? "another" : "comfyd",
          accessTokenTTL: 600,
          accessTokenFormat: "jwt",
          jwt: { sign: { alg: new URL(resource).pathname.split("/")[1] } },
        }),
      },
    },
  });
  handle = provider.callback();
  comfyd = await startComfyd("--set", `jwt.issuer=${issuer}`, "--set", "jwt.audience=comfyd");
});
after(async () => {
  await comfyd?.stop();
  server?.close();
  server?.closeAllConnections();
});

async function token(resource, scope) {
  const answer = await fetch(`${issuer}/token`, {
    method: "POST",
    headers: { Authorization: `Basic ${Buffer.from("render-farm:s3cret-s3cret").toString("base64")}` },
    body: new URLSearchParams({ grant_type: "client_credentials", resource: `https://comfyd.example.com/${resource}`, scope }),
  });
  const body = await answer.json();
  assert.equal(answer.status, 200, JSON.stringify(body));
  return body.access_token;
}

const get = (path, bearer) =>
  fetch(comfyd.url + path, { headers: bearer ? { Authorization: `Bearer ${bearer}` } : {} });
const submit = (bearer) =>
  fetch(`${comfyd.url}/v2/workflows/execute`, {
    method: "POST",
    headers: { Authorization: `Bearer ${bearer}` },
    body: JSON.stringify({
      workflow: {
        1: { class_type: "EmptyImage", inputs: { width: 8, height: 8, batch_size: 1, color: 1 } },
        2: { class_type: "SaveImage", inputs: { images: ["1", 0], filename_prefix: "oidc" } },
      },
    }),
  });

test("nobody is let in without a token", async () => {
  assert.equal((await get("/api/v2/jobs")).status, 401);
});

for (const alg of RESOURCES) {
  test(`a token by ${alg} is good for what it says`, async () => {
    const reading = await token(alg, "jobs:read");
    const header = JSON.parse(Buffer.from(reading.split(".")[0], "base64url"));
    assert.deepEqual([header.alg, header.typ], [alg, "at+jwt"]);
    assert.equal((await get("/api/v2/jobs", reading)).status, 200);
    assert.equal((await submit(reading)).status, 403);
    const writing = await token(alg, "jobs:read jobs:write");
    const submitted = await submit(writing);
    assert.equal(submitted.status, 202);
    const { execution_id: id } = await submitted.json();
    assert.equal((await get(`/v2/workflows/execution/${id}`, reading)).status, 200);
    const pieces = reading.split(".");
    pieces[1] = writing.split(".")[1];
    assert.equal((await get("/api/v2/jobs", pieces.join("."))).status, 401);
  });
}

test("a token for somebody else is refused", async () => {
  const foreign = await token("RS256/other", "jobs:read");
  const answer = await get("/api/v2/jobs", foreign);
  assert.equal(answer.status, 401);
  assert.match((await answer.json()).error.message, /audience/);
});
