// `./skerry suspend` and `./skerry service`, as a service manager runs them around a restart of the host.

import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { createTestDataFolder, describeTraces, freePorts, readHostTraces } from "@skerry/testkit";
import { SkerryCommand } from "@skerry/testkit/skerry-command";
import { waitUntil } from "@skerry/testkit/wait-until";
import { Sandbox } from "e2b";
import { afterAll, beforeAll, expect, test } from "vitest";

const PATIENCE_MS = 120_000;
let data: string;
let command: SkerryCommand;
let ports: string[];

beforeAll(async () => {
  data = (await createTestDataFolder(`t-${randomBytes(6).toString("hex")}`)).root;
  command = new SkerryCommand(data);
  const [api = 0, edge = 0] = await freePorts(2);
  ports = ["--api-port", String(api), "--edge-port", String(edge)];
});
afterAll(async () => {
  await skerry("down");
  rmSync(data, { recursive: true, force: true });
});

const skerry = (...args: string[]) => command.run(...args);
const pidOf = () => (JSON.parse(readFileSync(join(data, "skerry.pid"), "utf8")) as { pid: number }).pid;
const client = () => command.client();
const startService = () => command.spawn(["service"]);
const isUp = async () =>
  (await skerry("status", "--json").catch(() => ({ stdout: '{"healthy":false}' }))).stdout.includes('"healthy": true');

test("a suspended sandbox runs again after the next start, with its processes and the time that it had left", async () => {
  await skerry("up", "--detach", ...ports);
  const options = await client();
  const sandbox = await Sandbox.create({ ...options, timeoutMs: 1_800_000 });
  const process = await sandbox.commands.run("echo $$ > pid; n=0; while sleep 0.1; do n=$((n+1)); echo $n > count; done", {
    background: true,
  });
  await waitUntil(
    "it counts",
    async () => (await sandbox.files.exists("count")) && (await sandbox.files.read("count")) !== "",
    PATIENCE_MS,
  );
  const pid = (await sandbox.files.read("pid")).trim();
  expect((await skerry("suspend")).stderr).toContain("1 paused");
  await expect(skerry("status")).rejects.toThrow();
  const suspendedAt = Date.now();
  await skerry("up", "--detach");
  await waitUntil("it runs", async () => (await Sandbox.getInfo(sandbox.sandboxId, options)).state === "running", PATIENCE_MS);
  const { endAt } = await Sandbox.getInfo(sandbox.sandboxId, options);
  expect(endAt.getTime() - suspendedAt).toBeGreaterThan(1_500_000);
  const count = async () => Number(await sandbox.files.read("count"));
  const before = await count();
  await waitUntil("it goes on counting", async () => (await count()) > before + 2, PATIENCE_MS);
  expect((await sandbox.commands.run(`kill -0 ${pid} && echo alive`)).stdout).toBe("alive\n");
  await process.disconnect();
  await sandbox.kill();
});

test("the service takes a running platform over, starts it after a crash, and leaves sandboxes alone when it is stopped", async () => {
  const options = await client();
  const before = pidOf();
  const service = startService();
  const sandbox = await Sandbox.create(options);
  expect(pidOf()).toBe(before);
  // A kill before the service watches is a start that it makes.
  process.kill(before, "SIGKILL");
  await waitUntil("it runs again", async () => pidOf() !== before && (await isUp()), PATIENCE_MS);
  expect((await sandbox.commands.run("echo here")).stdout).toBe("here\n");
  service.kill("SIGTERM");
  const [exitCode] = await once(service, "exit");
  expect(exitCode).toBe(0);
  expect(await isUp()).toBe(false);
  const again = startService();
  await waitUntil("it is up", isUp, PATIENCE_MS);
  expect((await sandbox.commands.run("echo still here")).stdout).toBe("still here\n");
  await sandbox.kill();
  // `down` ends the service as well.
  await skerry("down");
  if (again.exitCode === null) await once(again, "exit");
  expect(again.exitCode).toBe(0);
  expect(describeTraces(await readHostTraces(data))).toEqual([]);
});

test("without a platform there is nothing to suspend", async () => {
  expect((await skerry("suspend")).stdout).toContain("not running");
});
