// What processes write, in the log of their sandbox, where the caller asked for it: docs/operating.md.

import { type Platform, startPlatform } from "@skerry/testkit";
import { runtimesFor } from "@skerry/testkit/depth";
import { Sandbox } from "e2b";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { callApi, clientOf } from "./client.ts";

interface Line {
  readonly message: string;
  readonly level: string;
  readonly fields: Readonly<Record<string, string>>;
}

describe.each(runtimesFor("output of processes in logs"))("output of processes on %s", (runtime) => {
  let platform: Platform;
  beforeAll(async () => {
    platform = await startPlatform({ runtime });
  });
  afterAll(async () => {
    await platform?.[Symbol.asyncDispose]();
  });

  const logged = (envs = {}) => Sandbox.create({ ...clientOf(platform), envs: { SKERRY_LOG_OUTPUT: "1", ...envs } });
  async function linesOf(id: string, query = ""): Promise<Line[]> {
    const { body } = await callApi(platform, `/v2/sandboxes/${id}/logs?direction=forward${query}`);
    return (body as { logs: Line[] }).logs.filter(({ fields }) => fields.logger === "process" || fields.logger === "platform");
  }
  /** All lines, page by page. */
  async function allLinesOf(id: string): Promise<Line[]> {
    const all: (Line & { readonly timestamp?: string })[] = [];
    for (let cursor = 0; ; cursor = Date.parse(all.at(-1)?.timestamp ?? "") + 1) {
      const page: (Line & { readonly timestamp?: string })[] = await linesOf(id, `&cursor=${cursor}`);
      if (page.length === 0) return all;
      all.push(...page);
    }
  }
  const outputOf = async (id: string, query = "") => (await linesOf(id, query)).filter(({ fields }) => fields.logger === "process");
  const textsOf = async (id: string) => (await outputOf(id)).map(({ message }) => message);
  const eventually = (read: () => Promise<unknown>) => expect.poll(read, { timeout: 60_000, interval: 250 });

  it("is in the log with its process, its stream and its level, for those who asked for it", async () => {
    const [sandbox, other] = await Promise.all([logged(), Sandbox.create(clientOf(platform))]);
    await other.commands.run("echo secret");
    await sandbox.commands.run("echo first; echo wrong >&2; printf 'no end'; printf 'ü\\r\\n\\033[31mred\\n' >&2");
    await sandbox.commands.run("echo not this", { envs: { SKERRY_LOG_OUTPUT: "0" } });
    // Its last words are in the log, too.
    await sandbox.commands.run("echo last");
    await sandbox.kill();
    await eventually(async () => (await textsOf(sandbox.sandboxId)).toSorted()).toEqual(
      ["first", "wrong", "no end", "ü", "\\x1b[31mred", "last"].toSorted(),
    );
    const lines = await outputOf(sandbox.sandboxId);
    expect(lines.find(({ message }) => message === "first")).toMatchObject({ level: "info", fields: { stream: "stdout" } });
    expect(lines.find(({ message }) => message === "wrong")).toMatchObject({ level: "warn", fields: { stream: "stderr" } });
    expect((await outputOf(sandbox.sandboxId, "&level=warn")).map(({ message }) => message)).not.toContain("first");
    expect((await outputOf(sandbox.sandboxId, "&search=las")).map(({ message }) => message)).toEqual(["last"]);
    expect(await textsOf(other.sandboxId)).toEqual([]);
    await other.kill();
  });

  it("is in the log of a fork, and goes on after a pause, a snapshot and a crash of the platform, without a line twice", async () => {
    const sandbox = await logged();
    await sandbox.commands.run("echo 1");
    await sandbox.createSnapshot();
    await sandbox.commands.run("echo 2");
    const { body } = await callApi(platform, `/sandboxes/${sandbox.sandboxId}/fork`, { body: { timeout: 600 } });
    const [forked] = body as { sandbox: { sandboxID: string } }[];
    const fork = await Sandbox.connect(forked?.sandbox.sandboxID ?? "", clientOf(platform));
    await fork.commands.run("echo of the fork");
    await sandbox.commands.run("echo 3");
    await eventually(() => textsOf(sandbox.sandboxId)).toEqual(["1", "2", "3"]);
    await eventually(() => textsOf(fork.sandboxId)).toEqual(["of the fork"]);
    await platform.kill9();
    await platform.start();
    const again = await sandbox.connect();
    await again.commands.run("echo 4");
    await again.pause();
    const resumed = await sandbox.connect();
    await resumed.commands.run("echo 5");
    await eventually(() => textsOf(sandbox.sandboxId)).toEqual(["1", "2", "3", "4", "5"]);
    await platform.restart();
    await (await sandbox.connect()).commands.run("echo 6");
    await eventually(() => textsOf(sandbox.sandboxId)).toEqual(["1", "2", "3", "4", "5", "6"]);
    await Promise.all([sandbox.kill(), fork.kill()]);
  });

  it("that is a flood costs its own sandbox lines, and one line says how many are missing", async () => {
    const [sandbox, other] = await Promise.all([logged(), logged()]);
    await sandbox.commands.run("seq 1 200000; echo the end");
    await other.commands.run("echo unharmed");
    await eventually(() => textsOf(other.sandboxId)).toEqual(["unharmed"]);
    await sandbox.commands.run("sleep 6; echo after");
    await eventually(async () => (await allLinesOf(sandbox.sandboxId)).at(-1)?.message).toBe("after");
    const lines = await allLinesOf(sandbox.sandboxId);
    const missing = lines.flatMap(({ message }) => /^(\d+) lines of output are missing here/.exec(message)?.[1] ?? []).map(Number);
    const told = lines.filter(({ fields }) => fields.logger === "process").length;
    expect(missing.length).toBeGreaterThan(0);
    expect(told + missing.reduce((sum, count) => sum + count, 0)).toBe(200_002);
    await Promise.all([sandbox.kill(), other.kill()]);
  });

  it("cannot be read by anybody else, and its place in the agent is closed to clients", async () => {
    const sandbox = await logged();
    const { status } = await fetch(`${platform.edgeUrl}/output`, {
      headers: { "E2b-Sandbox-Id": sandbox.sandboxId, "E2b-Sandbox-Port": "49983" },
    });
    expect(status).toBe(404);
    await sandbox.kill();
  });
});
