// The platform is killed in every phase of a build, a step hangs, floods, or fills its disk. Each build ends, says why if it failed, and
// leaves nothing: stopping the platform fails when anything of it is left on the host.

import { createServer, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { type Platform, startPlatform, startRegistry, type TestRegistry, tarArchive } from "@skerry/testkit";
import { sampleOf } from "@skerry/testkit/depth";
import { waitUntil } from "@skerry/testkit/wait-until";
import { type BuildInfo, Sandbox, Template, type TemplateClass, waitForFile } from "e2b";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { clientOf } from "../e2e/client.ts";

const SMALL = { cpuCount: 1, memoryMB: 512 };
/** Only a hang takes this long. */
const LIMIT_MS = 100_000;
let platform: Platform;
let registry: TestRegistry;
let slow: SlowRegistry;

beforeAll(async () => {
  [platform, registry] = await Promise.all([startPlatform(), startRegistry()]);
  slow = await SlowRegistry.start(registry.host);
});

afterAll(async () => {
  const stopped = await Promise.allSettled([platform?.[Symbol.asyncDispose](), slow?.stop(), registry?.stop()]);
  for (const outcome of stopped) if (outcome.status === "rejected") throw outcome.reason;
});

/** In front of a registry: it holds the content of images back, while it is told to. */
class SlowRegistry {
  isHolding = false;
  /** Requests for content that it held back. */
  held = 0;
  readonly #server: Server;

  private constructor(host: string) {
    const [hostname, port] = host.split(":");
    this.#server = createServer((req, res) => {
      if (this.isHolding && req.url?.includes("/blobs/")) {
        this.held += 1;
        return;
      }
      const onward = request({ hostname, port, path: req.url, method: req.method, headers: { ...req.headers, host } }, (answer) => {
        res.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(res);
      });
      onward.once("error", () => res.destroy());
      req.pipe(onward);
    });
  }

  static async start(host: string): Promise<SlowRegistry> {
    const slow = new SlowRegistry(host);
    await new Promise<void>((resolve) => slow.#server.listen(0, "127.0.0.1", resolve));
    return slow;
  }

  get host(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }
}

const client = () => ({ ...clientOf(platform), ...SMALL });

async function statusOf(info: BuildInfo): Promise<{ status: string; reason: string; log: string[] }> {
  const log: string[] = [];
  for (;;) {
    const { status, reason, logEntries } = await Template.getBuildStatus(info, { ...client(), logsOffset: log.length });
    log.push(...logEntries.map(({ message }) => message));
    if (logEntries.length === 0) return { status, reason: reason?.message ?? "", log };
  }
}

const untilLogged = (info: BuildInfo, text: string): Promise<unknown> =>
  waitUntil(`the build says "${text}"`, async () => (await statusOf(info)).log.some((line) => line.includes(text)), LIMIT_MS);

async function ended(info: BuildInfo): Promise<{ status: string; reason: string; log: string[] }> {
  await waitUntil("the build ends", async () => ["ready", "error"].includes((await statusOf(info)).status), LIMIT_MS);
  return await statusOf(info);
}

interface Phase {
  readonly phase: string;
  readonly reached: (info: BuildInfo) => Promise<unknown>;
}

const PHASES: readonly Phase[] = [
  { phase: "the pull of an image", reached: () => waitUntil("content is asked for", () => slow.held > 0, LIMIT_MS) },
  { phase: "provisioning", reached: (info) => untilLogged(info, "Provisioning sandbox template") },
  { phase: "a step", reached: (info) => untilLogged(info, "[stdout]: begun") },
  { phase: "the commit of a step", reached: (info) => untilLogged(info, "[stdout]: written") },
  { phase: "finalize", reached: (info) => untilLogged(info, "[finalize]") },
  { phase: "the start command", reached: (info) => untilLogged(info, "Running start command") },
];
const KILLED = sampleOf("phases of a build in which the platform is killed", PHASES, ({ phase }) => phase === "a step");

function templateOf(reference: string): TemplateClass {
  return Template()
    .fromImage(reference)
    .runCmd("echo begun; sleep 1; echo one > /home/user/one")
    .runCmd("head -c 10000000 /dev/urandom > /home/user/large; echo written")
    .setStartCmd("sleep 1; echo started > /tmp/started", waitForFile("/tmp/started"));
}

describe("the platform is killed", () => {
  it.each(KILLED)("during $phase: the build ends, and the next one succeeds", async ({ phase, reached }) => {
    const name = phase.replaceAll(" ", "-");
    await registry.push(`${name}:v1`, { layers: [tarArchive([{ path: "image", content: phase }])] });
    slow.isHolding = phase === "the pull of an image";
    const info = await Template.buildInBackground(templateOf(`${slow.host}/${name}:v1`), name, client());
    await reached(info);
    await platform.kill9();
    slow.isHolding = false;
    await platform.start();
    const { status, reason } = await ended(info);
    if (status === "error") expect(reason).not.toBe("");
    await Template.build(templateOf(`${slow.host}/${name}:v1`), name, client());
    const sandbox = await Sandbox.create(name, client());
    expect((await sandbox.commands.run("cat /image one /tmp/started; stat -c %s large")).stdout).toBe(`${phase}one\nstarted\n10000000\n`);
    await sandbox.kill();
  });
});

describe("a step", () => {
  it.each([
    ["hangs", "sleep 10000"],
    ["forks without end", ":(){ :|: & };:; sleep 10000"],
  ])("that %s disturbs nothing, and is ended when a newer build of the same tag starts", async (title, command) => {
    const name = title.replaceAll(" ", "-");
    const endless = Template().fromTemplate("base").runCmd(`echo begun; ${command}`);
    const hanging = await Template.buildInBackground(endless, name, client());
    await untilLogged(hanging, "[stdout]: begun");
    await Template.build(Template().fromTemplate("base").runCmd("true"), name, client());
    expect(await ended(hanging)).toMatchObject({ status: "error", reason: "build was cancelled" });
  });

  it.each([
    ["fills its disk", "head -c 100G /dev/zero > /full", "failed to run command"],
    ["ends its sandbox", "sudo kill -9 -1; sleep 60", ""],
  ])("that %s fails alone", async (title, command, message) => {
    const name = title.replaceAll(" ", "-");
    const failing = await Template.buildInBackground(Template().fromTemplate("base").runCmd(command), name, client());
    const working = Template.build(Template().fromTemplate("base").runCmd("true"), `${name}-beside`, client());
    const { status, reason } = await ended(failing);
    expect({ status, reason }).toEqual({ status: "error", reason: expect.stringContaining(message) });
    expect(reason).not.toBe("");
    await working;
  });

  it("that floods its log does not hold up anything", async () => {
    const flood = Template().fromTemplate("base").runCmd("yes a-long-line-of-output | head -n 40000; echo the-end");
    const { status, log } = await ended(await Template.buildInBackground(flood, "flood", client()));
    expect(status).toBe("ready");
    expect(log.length).toBeLessThan(20_000);
    expect(log.some((line) => line.includes("the-end"))).toBe(true);
  });
});
