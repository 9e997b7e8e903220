import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { Code } from "@connectrpc/connect";
import { adoptBash } from "@skerry/testkit/bash-layer";
import { waitUntil } from "@skerry/testkit/wait-until";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { areasInUse, type NodeUnderTest, startNode } from "./node-under-test.ts";

describe("builds on a node", () => {
  let under: NodeUnderTest;
  let bash: string;
  beforeAll(async () => {
    under = await startNode("gvisor");
    bash = await adoptBash(under.config.layers);
  });
  afterAll(() => under?.[Symbol.asyncDispose]());

  const run = (command: string) => ({ type: "RUN", args: [command] });
  const start = (buildId: string, steps: { type: string; args: string[] }[]) =>
    under.client.startBuild({
      spec: {
        buildId,
        templateId: "t",
        cacheScope: "team",
        source: { case: "template", value: { name: "base", layers: [under.layer, bash] } },
        steps,
        cpuCount: 1,
        memoryMb: 256,
        diskSizeMb: 128,
      },
    });
  const heard = async (buildId: string, from = 0n) => {
    const lines: string[] = [];
    for await (const { event } of under.client.watchBuild({ buildId, from })) {
      if (event.case === "line") lines.push(event.value.message);
      else return { lines, outcome: event };
    }
    throw new Error("the stream ended without an outcome");
  };
  const holds = () => readdirSync(join(under.config.dir, "../layers/holds")).filter((name) => name.startsWith("build-"));

  it("say what they do, end with a template that sandboxes start from, and are forgotten", async () => {
    await start("one", [run("echo hello > /tmp/hello; cat /tmp/hello"), { type: "ENV", args: ["A", "b"] }]);
    const { lines, outcome } = await heard("one");
    expect(lines.join("\n")).toContain("[builder 1/2] [stdout]: hello");
    if (outcome.case !== "succeeded") throw new Error(`it failed: ${JSON.stringify(outcome.value)}: ${lines.join("\n")}`);
    expect(outcome.value.context).toMatchObject({ user: "user", env: { A: "b" } });
    expect(holds()).toEqual(["build-one.json"]);
    const id = "i".repeat(20);
    await under.client.createSandbox({ spec: { ...under.spec(id), layers: outcome.value.layers } });
    await under.client.killSandbox({ sandboxId: id });
    await under.client.forgetBuild({ buildId: "one" });
    expect(holds()).toEqual([]);
    const unused = (await under.client.listUnusedLayers({})).digests;
    expect(unused.filter((digest) => outcome.value.layers.includes(digest))).toEqual([]);
    expect(areasInUse(under)).toEqual([]);
  });

  it("fail with the reason and the step", async () => {
    await start("fails", [run("true"), run("exit 3")]);
    const { outcome } = await heard("fails");
    expect(outcome).toMatchObject({ case: "failed", value: { step: "2", message: "failed to run command 'exit 3': exit status 3" } });
    await expect(heard("never-started")).rejects.toMatchObject({ code: Code.NotFound });
  });

  it("are ended by a cancellation, and are started again after a restart of the node", async () => {
    await start("cancelled", [run("echo begun; sleep 600")]);
    const watching = heard("cancelled");
    await waitUntil("the step runs", () => areasInUse(under).length > 0);
    await under.client.cancelBuild({ buildId: "cancelled" });
    expect((await watching).outcome).toMatchObject({ case: "failed", value: { message: "build was cancelled" } });
    expect(areasInUse(under)).toEqual([]);

    await start("cut-off", [run("echo first > /tmp/first"), run("sleep 600")]);
    const cutOff = expect(heard("cut-off")).rejects.toMatchObject({ code: Code.NotFound });
    for await (const { event } of under.client.watchBuild({ buildId: "cut-off" }))
      if (event.case === "line" && event.value.message.startsWith("[builder 2/2] RUN")) break;
    await under.restart();
    await cutOff;
    expect(areasInUse(under)).toEqual([]);
    expect(holds()).toEqual([]);
    await start("cut-off", [run("echo first > /tmp/first"), run("true")]);
    const again = await heard("cut-off");
    expect(again.outcome.case).toBe("succeeded");
    expect(again.lines.some((line) => line.startsWith("CACHED [builder 1/2] RUN echo first"))).toBe(true);
    expect(existsSync(join(under.config.dir, "build-pulls"))).toBe(true);
  });

  it("are refused when as many run as may", async () => {
    for (const id of ["busy-one", "busy-two"]) await start(id, [run("sleep 600")]);
    await expect(start("one-too-many", [])).rejects.toMatchObject({ code: Code.ResourceExhausted });
    for (const buildId of ["busy-one", "busy-two"]) await under.client.forgetBuild({ buildId });
    expect(areasInUse(under)).toEqual([]);
  });
});
