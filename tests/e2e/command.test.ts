// ./skerry as a person uses it: the real command with a separate data folder.

import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { spawnCommand } from "@skerry/base";
import { writeProcessRecord } from "@skerry/setup/folder";
import { createTestDataFolder, describeTraces, freePorts, readHostTraces } from "@skerry/testkit";
import { SkerryCommand } from "@skerry/testkit/skerry-command";
import { Sandbox } from "e2b";
import { afterAll, beforeAll, expect, test } from "vitest";

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

const skerry = (...args: string[]) => command.answer(...args);

const upDetached = () => skerry("up", "--detach", ...ports);
const leftovers = async () => describeTraces(await readHostTraces(data));
const pidOf = () => (JSON.parse(readFileSync(join(data, "skerry.pid"), "utf8")) as { pid: number }).pid;

test("up shows each step with its time, runs a first sandbox and says how to connect", async () => {
  const { exitCode, stdout, stderr } = await upDetached();
  expect(exitCode, stderr).toBe(0);
  for (const step of ["Debian packages", "gVisor (runsc)", "sandbox agent", "base template", "platform", "first sandbox"]) {
    expect(stderr).toMatch(new RegExp(`^✓ ${step.replace(/[()]/g, "\\$&")} .*\\([\\d.]+ s\\)$`, "m"));
  }
  expect(stdout).toContain('eval "$(./skerry env');
});

test("a second up reports at once that the platform is up, and refuses other settings", async () => {
  // The output shows no set-up step, because none is needed.
  expect(await upDetached()).toEqual({ exitCode: 0, stdout: expect.stringContaining("is already running"), stderr: "" });
  expect(await skerry("up", "--detach", "--runtime", "runc")).toMatchObject({
    exitCode: 1,
    stderr: expect.stringMatching(/other settings.*\.\/skerry restart/s),
  });
});

test("the variables of env give a client access, and without --all nothing beyond its needs", async () => {
  const { stdout } = await skerry("env");
  const variables = Object.fromEntries(
    stdout.split("\n").flatMap((line) => [...line.matchAll(/^export (\w+)=(.*)$/g)].map((match) => [match[1], match[2]])),
  );
  expect(Object.keys(variables).sort()).toEqual(["E2B_API_KEY", "E2B_API_URL", "E2B_DOMAIN", "E2B_SANDBOX_URL", "E2B_VOLUME_API_URL"]);
  const response = await fetch(`${variables.E2B_API_URL}/sandboxes`, { headers: { "X-API-Key": variables.E2B_API_KEY ?? "" } });
  expect(await response.json()).toEqual([]);
  expect((await skerry("env", "--all")).stdout).toContain("E2B_ACCESS_TOKEN=sk_e2b_");
});

test("status and doctor agree that everything works", async () => {
  expect(JSON.parse((await skerry("status", "--json")).stdout)).toMatchObject({
    running: true,
    healthy: true,
    runtime: "gvisor",
    runningSandboxes: 0,
    roles: "api,edge,node",
    database: "sqlite",
    platform: {
      teams: 1,
      eventLagMs: 0,
      webhooks: { enabled: 0 },
      sandboxes: { ended: 1 },
      nodes: [{ status: "ready", startsWaiting: 0 }],
    },
    lastErrors: [],
  });
  expect((await skerry("status")).stdout).toMatch(/^process +\d+ \(api, edge, node\), \d+ MiB, up .*$/m);
  expect((await skerry("status")).stdout).toMatch(/^node +\S+, ready: \d+ ready in the pool, \d+ starting, 0 in the queue$/m);
  expect((await skerry("audit")).stdout).toMatch(/ done 201 createSandbox → i[a-z0-9]{20} by e2b_..….{4} from 127\.0\.0\.1$/m);
  const doctor = await skerry("doctor", "--json");
  expect(doctor, doctor.stderr).toMatchObject({ exitCode: 0 });
});

test("a platform is found without its pid file", async () => {
  const before = pidOf();
  rmSync(join(data, "skerry.pid"));
  expect(JSON.parse((await skerry("status", "--json")).stdout)).toMatchObject({ running: true, healthy: true, pid: before });
  expect((await upDetached()).stdout).toContain(`is already running (process ${before}`);
  expect((await skerry("logs", "-n", "1")).exitCode).toBe(0);
});

test("restart applies other settings while sandboxes keep running, also when the pid file is lost", async () => {
  const client = async () => {
    const variables = JSON.parse((await skerry("env", "--json")).stdout) as Record<string, string>;
    return { apiKey: variables.E2B_API_KEY ?? "", apiUrl: variables.E2B_API_URL ?? "", sandboxUrl: variables.E2B_SANDBOX_URL ?? "" };
  };
  const sandbox = await Sandbox.create(await client());
  await sandbox.commands.run("for i in $(seq 100000); do echo $i > next; mv next count; sleep 0.1; done", {
    background: true,
    timeoutMs: 0,
  });
  const countOf = async (one: Sandbox) => Number(await one.files.read("count"));
  await expect.poll(() => countOf(sandbox)).toBeGreaterThan(1);
  const before = (JSON.parse((await skerry("status", "--json")).stdout) as { pid: number }).pid;
  const [api = 0, edge = 0, taken = 0] = await freePorts(3);
  const { exitCode, stderr } = await skerry("restart", "--api-port", String(api), "--edge-port", String(edge));
  expect(exitCode, stderr).toBe(0);
  expect(pidOf()).not.toBe(before);
  expect(() => process.kill(before, 0)).toThrow("ESRCH");
  expect(JSON.parse((await skerry("status", "--json")).stdout)).toMatchObject({ healthy: true, pid: pidOf() });
  const again = await Sandbox.connect(sandbox.sandboxId, await client());
  const count = await countOf(again);
  await expect.poll(() => countOf(again)).toBeGreaterThan(count);

  // With invalid settings the command changes nothing.
  const running = pidOf();
  const other = createServer().listen(taken, "127.0.0.1");
  await once(other, "listening");
  for (const [what, option] of [
    ["API", "--api-port"],
    ["edge", "--edge-port"],
  ] as const) {
    const { exitCode, stderr } = await skerry("restart", option, String(taken));
    expect({ exitCode, stderr }).toEqual({
      exitCode: 1,
      stderr: expect.stringContaining(`the ${what} can't listen on 127.0.0.1, port ${taken}`),
    });
    expect(stderr).toContain(`${option} `);
    expect(stderr).not.toMatch(/\bat .*:\d+:\d+/);
  }
  const serve = { SKERRY_EDGE_PORT: String(taken), SKERRY_CONTROL_URL: "http://127.0.0.1:1" };
  expect(await command.with(serve).answer("serve", "--roles", "edge")).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining("SKERRY_EDGE_PORT"),
  });
  other.close();
  expect(JSON.parse((await skerry("status", "--json")).stdout)).toMatchObject({ healthy: true, runningSandboxes: 1, pid: running });
  expect(await countOf(await Sandbox.connect(sandbox.sandboxId, await client()))).toBeGreaterThan(count);
  await again.kill();
});

test("a killed platform is reported, another process with its pid is not mistaken for it, and up restarts it", async () => {
  process.kill(pidOf(), "SIGKILL");
  while (JSON.parse((await skerry("status", "--json")).stdout || '{"running":false}').running) await sleep(50);
  expect((await skerry("status")).exitCode).toBe(3);
  expect((await upDetached()).exitCode).toBe(0);
});

test("down removes everything, succeeds without a platform, and spares a process that the pid file names by mistake", async () => {
  expect(await leftovers()).not.toEqual([]);
  const bystander = spawnCommand("tail", ["-f", "/dev/null"]);
  await writeProcessRecord(join(data, "skerry.pid"), bystander.pid ?? 0);
  expect(await skerry("down")).toMatchObject({ exitCode: 0 });
  expect(bystander.exitCode ?? bystander.signalCode).toBeNull();
  bystander.kill();
  expect(await leftovers()).toEqual([]);
  expect(await skerry("down")).toMatchObject({ exitCode: 0 });
});

test("in the foreground, Ctrl-C ends everything", async () => {
  const child = command.spawn(["up", ...ports], { stdout: "pipe", stderr: "pipe" });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream?.on("data", (chunk) => (output += String(chunk)));
  const exited = once(child, "exit");
  while (!output.includes("Press Ctrl-C to stop")) {
    expect(child.exitCode, output).toBe(null);
    await sleep(50);
  }
  child.kill("SIGINT");
  expect(await exited, output).toEqual([0, null]);
  expect(await leftovers()).toEqual([]);
});

test("restart reports that no platform was ever started", async () => {
  const { stderr, exitCode } = await new SkerryCommand(join(data, "empty")).answer("restart");
  expect({ stderr, exitCode }).toEqual({ stderr: expect.stringContaining("./skerry up"), exitCode: 1 });
});

test("down deletes the data only with --purge", async () => {
  expect(readFileSync(join(data, "secrets.json"), "utf8")).toContain("e2b_");
  const { exitCode } = await skerry("down", "--purge");
  expect(exitCode).toBe(0);
  expect(() => readFileSync(join(data, "secrets.json"))).toThrow("ENOENT");
});
