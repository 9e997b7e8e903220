// Templates by the official SDK from npm: builds, their logs and failures, names and tags. The images come from a registry of the test.

import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startRegistry, type TestRegistry, tarArchive } from "@skerry/testkit";
import { itInFullRuns } from "@skerry/testkit/depth";
import { type SharedPlatform, sharedPlatform } from "@skerry/testkit/run-services";
import { BuildError, type BuildInfo, type LogEntry, Sandbox, Template, type TemplateClass, waitForFile, waitForPort } from "e2b";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { clientOf } from "./client.ts";

const SMALL = { cpuCount: 1, memoryMB: 512 };
const context = mkdtempSync(join(tmpdir(), "skerry-context-"));
const here = { fileContextPath: context };
let platform: SharedPlatform;
let registry: TestRegistry;
let client: ReturnType<typeof clientOf>;

beforeAll(async () => {
  [platform, registry] = await Promise.all([sharedPlatform("gvisor"), startRegistry()]);
  client = clientOf(platform);
  for (const folder of ["src/deep", "tree"]) mkdirSync(join(context, folder), { recursive: true });
  for (const name of ["src/a.txt", "src/deep/b.txt", "src/c.md", "tree/.hidden", "package.json"]) writeFileSync(join(context, name), name);
  symlinkSync("a.txt", join(context, "src/link.txt"));
});

afterAll(async () => {
  await Promise.allSettled([platform?.[Symbol.asyncDispose](), registry?.stop()]);
  rmSync(context, { recursive: true, force: true });
});

let count = 0;
/** A name that no other test file uses: they share the platform. */
const unused = (what: string): string => `sdk-${what}-${process.pid}-${++count}`;

interface Built {
  readonly info: BuildInfo;
  readonly log: readonly string[];
}

async function build(template: TemplateClass, name: string, options: { tags?: string[]; skipCache?: boolean } = {}): Promise<Built> {
  const entries: LogEntry[] = [];
  const info = await Template.build(template, name, { ...client, ...SMALL, ...options, onBuildLogs: (entry) => entries.push(entry) });
  return { info, log: entries.map(({ level, message }) => `${level} ${message}`) };
}

/** Runs commands in a new sandbox of a template, and returns what each prints. */
async function inSandbox(name: string, ...commands: string[]): Promise<string[]> {
  const sandbox = await Sandbox.create(name, client);
  try {
    const outputs: string[] = [];
    for (const command of commands) outputs.push((await sandbox.commands.run(command)).stdout.trim());
    return outputs;
  } finally {
    await sandbox.kill();
  }
}

async function failureOf(template: TemplateClass): Promise<Error> {
  const built = build(template, unused("failing"));
  return await built.then(
    () => expect.unreachable("the build succeeded"),
    (error: Error) => error,
  );
}

describe("a build", () => {
  it("runs its steps in order, and sandboxes start with what they left", async () => {
    const name = unused("all");
    const template = Template(here)
      .fromTemplate("base")
      .setEnvs({ GREETING: "hello  world", MORE: "$" })
      .setWorkdir("/app")
      .copy("package.json", "./")
      .copy("src/**/*.txt", "/data", { user: "root", mode: 0o640 })
      .copy("tree", "tree")
      .runCmd(['printf "%s" "$GREETING" > greeting', "id -un > who", "pwd >> who"])
      .runCmd("id -un > /by-root", { user: "root" })
      .setStartCmd('printf "%s" "$GREETING" > /tmp/env; exec python3 -m http.server 8123', waitForPort(8123));
    const { log } = await build(template, `${name}:v1`);
    expect(log.filter((line) => /\[builder \d\/7\] (RUN|COPY|ENV|WORKDIR) .*\[[0-9a-f]{64}\]$/.test(line))).toHaveLength(7);
    expect(log.findIndex((line) => line.includes("Running start command"))).toBeLessThan(
      log.findIndex((line) => line.includes("Template is ready")),
    );
    expect(
      await inSandbox(
        `${name}:v1`,
        "curl -sf localhost:8123/greeting; cat /tmp/env",
        "id -un; pwd; echo -$GREETING-",
        "cat who /by-root package.json",
        "stat -c '%U:%G %a %n' /data/a.txt /data/deep/b.txt package.json",
        "ls -A tree; readlink /data/link.txt; ls /data",
      ),
    ).toEqual([
      "hello  worldhello  world",
      "user\n/app\n--",
      "user\n/app\nroot\npackage.json",
      "root:root 640 /data/a.txt\nroot:root 640 /data/deep/b.txt\nuser:user 644 package.json",
      ".hidden\na.txt\na.txt\ndeep\nlink.txt",
    ]);
  });

  it("reuses steps that did not change, unless it must not", async () => {
    const name = unused("cached");
    const steps = (command: string, options?: { forceUpload: true }) =>
      Template(here).fromTemplate("base").copy("src", "/src", options).runCmd(command);
    const areCached = ({ log }: Built) =>
      log.filter((line) => /\[builder \d\/2\] [A-Z]+ .*\[[0-9a-f]{64}\]$/.test(line)).map((line) => line.includes("CACHED"));
    expect(areCached(await build(steps("true"), name))).toEqual([false, false]);
    expect(areCached(await build(steps("exit 0"), name))).toEqual([true, false]);
    expect(areCached(await build(steps("exit 0"), name, { skipCache: true }))).toEqual([false, false]);
    const forced = await build(steps("true", { forceUpload: true }), name);
    expect(forced.log.some((line) => line.includes("Uploaded 'src'"))).toBe(true);
    expect(areCached(forced)).toEqual([false, false]);
  });

  itInFullRuns("starts from an image without a shell, and from a Dockerfile", async () => {
    const tiny = await registry.push("tiny:v1", {
      layers: [tarArchive([{ path: "hello", content: "tiny" }])],
      config: { Env: ["FROM_IMAGE=yes"] },
    });
    const name = unused("image");
    await build(
      Template(here)
        .fromImage(tiny)
        .runCmd("echo $FROM_IMAGE > /tmp/env && cp /hello /tmp/hello")
        .setStartCmd("echo > /tmp/ready", waitForFile("/tmp/ready")),
      name,
    );
    expect(await inSandbox(name, "cat /tmp/env /hello; id -un")).toEqual(["yes\ntinyuser"]);
    const dockerfile = [`FROM ${tiny}`, "WORKDIR /srv", "COPY package.json .", "ENV A=b", "RUN echo $A \\", "  > a", "USER user"].join(
      "\n",
    );
    await build(Template(here).fromDockerfile(dockerfile), name);
    expect(await inSandbox(name, "cat /srv/a; cat /srv/package.json; pwd")).toEqual(["b\npackage.json/srv"]);
  });

  it("can go on in the background", async () => {
    const template = Template().fromTemplate("base").runCmd("sleep 1");
    const info = await Template.buildInBackground(template, unused("background"), { ...client, ...SMALL });
    expect((await Template.getBuildStatus(info, client)).status).toBe("building");
    await expect.poll(async () => (await Template.getBuildStatus(info, client)).status, { interval: 200 }).toBe("ready");
    expect((await Template.getBuildStatus(info, { ...client, logsOffset: 10_000 })).logEntries).toEqual([]);
  });
});

describe("a build that fails", () => {
  it("blames the call that made the step", async () => {
    const template = Template(here).fromTemplate("base").runCmd("true");
    const line = Number(/builds\.test\.ts:(\d+)/.exec(new Error("here").stack ?? "")?.[1]) + 1;
    template.runCmd("exit 3");
    const error = await failureOf(template.runCmd("true"));
    expect(error).toBeInstanceOf(BuildError);
    expect(error.message).toContain("failed to run command 'exit 3': exit status 3");
    expect(error.stack).toContain(`builds.test.ts:${line}`);
  });

  it.each<[string, () => TemplateClass, string]>([
    ["an unknown user", () => Template().fromTemplate("base").runCmd("whoami", { user: "root123" }), "invalid username: 'root123'"],
    ["an unknown template", () => Template().fromTemplate("no-such-template"), "template 'no-such-template' not found"],
    ["an image that does not exist", () => Template().fromImage(`${registry.host}/nothing:v1`), "/nothing:v1"],
    ["a start command that fails", () => Template().fromTemplate("base").setStartCmd("exit 7", waitForFile("/never")), "exit status 7"],
  ])("says what is wrong: %s", async (_title, template, message) => {
    expect((await failureOf(template())).message).toContain(message);
  });
});

describe("names and tags", () => {
  it("are assigned, listed and removed", async () => {
    const name = unused("tags");
    expect(await Template.exists(name, client)).toBe(false);
    const { info } = await build(Template().fromTemplate("base"), name, { tags: ["v1", "stable"] });
    expect([...info.tags].sort()).toEqual(["stable", "v1"]);
    expect(await Template.exists(name, client)).toBe(true);
    expect(await Template.assignTags(`${name}:v1`, ["latest"], client)).toMatchObject({ buildId: info.buildId, tags: ["latest"] });
    const tagsOf = async () => (await Template.getTags(name, client)).map(({ tag }) => tag).sort();
    expect(await tagsOf()).toEqual(["latest", "stable", "v1"]);
    await Template.removeTags(name, ["stable", "v1"], client);
    expect(await tagsOf()).toEqual(["latest"]);
    await expect(Template.assignTags(`${name}:gone`, "x", client)).rejects.toThrow();
    expect(await inSandbox(`${name}:latest`, "id -un")).toEqual(["user"]);
  });
});

it("builds on runc, where the start command runs in each sandbox", async () => {
  await using runc = await sharedPlatform("runc");
  const options = { ...clientOf(runc), ...SMALL };
  const name = unused("runc");
  const template = Template(here)
    .fromTemplate("base")
    .copy("src/*.txt", "copied")
    .setStartCmd("date +%s%N > /tmp/ready", waitForFile("/tmp/ready"));
  await Template.build(template, name, options);
  const started = await Promise.all([0, 1].map(() => Sandbox.create(name, options)));
  const outputs = await Promise.all(started.map((sandbox) => sandbox.commands.run("cat copied/a.txt /tmp/ready")));
  expect(outputs.map(({ stdout }) => stdout.split(/\d/)[0])).toEqual(["src/a.txt", "src/a.txt"]);
  expect(new Set(outputs.map(({ stdout }) => stdout)).size).toBe(2);
});
