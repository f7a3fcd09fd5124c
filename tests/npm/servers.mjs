// Starts the programs that the client tests talk to, and stops them again.
import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

// Resolves with { url, stop } once the program prints where it listens.
async function start(program, args) {
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "inherit"] });
  const exited = new Promise((resolve) => child.once("exit", resolve));
  const url = await new Promise((resolve, reject) => {
    createInterface({ input: child.stdout }).on("line", (line) => {
      const match = line.match(/^listening on (http:\/\/\S+)/);
      if (match) resolve(match[1]);
    });
    exited.then((code) => reject(new Error(`${program} ended with ${code}`)));
  });
  return {
    url,
    kill: () => child.kill("SIGKILL"),
    stop: async () => {
      child.kill("SIGTERM");
      await exited;
    },
  };
}

export const startDouble = (...args) => start(process.env.COMFY_DOUBLE, args);

// Ceph's S3 gateway, with the keys that tests/support/radosgw.hpp names.
export const startRadosgw = () => start(process.env.RADOSGW_SERVER, []);
export const s3Keys = { accessKeyId: "TESTACCESSKEY", secretAccessKey: "test/secret+key" };

// The program with data of its own, which goes with it.
async function startWithData(args) {
  const data = await mkdtemp(join(tmpdir(), "comfyd-npm-"));
  const server = await start(process.env.COMFYD_BINARY, [...args, "--listen", "127.0.0.1:0", "--data", data]);
  return {
    ...server,
    stop: async () => {
      await server.stop();
      await rm(data, { recursive: true, force: true });
    },
  };
}

export const startEngine = () => startWithData(["engine"]);

export const startComfyd = (...args) =>
  startWithData(["serve", "--set", "shutdown_grace_s=0", "--log-level", "warning", ...args]);
