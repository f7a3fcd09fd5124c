import WebSocket from "ws";
import http from "node:http";
import { Client } from "@stable-canvas/comfyui-client";
import { ComfyUIClient } from "comfy-ui-client";
const url = process.argv[2]; const host = new URL(url).host;
const picture = (color, side = 64) => ({ 1: { class_type: "EmptyImage", inputs: { width: side, height: side, batch_size: 1, color } }, 2: { class_type: "SaveImage", inputs: { images: ["1", 0], filename_prefix: "client" } } });
{ const c = new Client({ api_host: host, WebSocket, fetch }); c.connect();
  console.log("defs", Object.keys(await c.getNodeDefs()).length);
  const r = await c.enqueue(picture(255)); console.log("stable-canvas images", r.images.length);
  const r2 = await c.enqueue_polling(picture(254)); console.log("polling images", r2.images.length);
  c.close(); }
{ const c = new ComfyUIClient(host, "5f0e2c56-4a7e-4b0c-9f57-7d7d2a9d0c11"); await c.connect();
  const im = await c.getImages(picture(253)); console.log("comfy-ui-client", Object.keys(im), im["2"]?.length);
  console.log("hist", Object.keys(await c.getHistory()).length); await c.disconnect(); }
const agent = new http.Agent({ keepAlive: true });
const ws = new WebSocket(`ws://${host}/ws?clientId=bench`);
await new Promise(r => ws.once("open", r));
let wake; ws.on("message", (d, bin) => { if (bin) return; const m = JSON.parse(d); if (m.type === "executing" && m.data.node === null) wake?.(m.data.prompt_id); });
const post = (body) => new Promise((res, rej) => { const q = http.request(url + "/prompt", { method: "POST", agent }, r => { let s = ""; r.on("data", d => s += d); r.on("end", () => res(JSON.parse(s))); }); q.on("error", rej); q.end(body); });
for (const n of [50, 300]) {
const times = []; const t0 = performance.now();
for (let i = 0; i < n; i++) { const t = performance.now(); const done = new Promise(r => wake = r); await post(JSON.stringify({ prompt: picture(i + n * 1000), client_id: "bench" })); await done; times.push(performance.now() - t); }
const total = performance.now() - t0; times.sort((a, b) => a - b);
console.log(n, "p50", times[n >> 1].toFixed(2), "p99", times[Math.floor(n * .99)].toFixed(2), "per s", (n / total * 1000).toFixed(0)); }
ws.close(); agent.destroy(); process.exit(0);
