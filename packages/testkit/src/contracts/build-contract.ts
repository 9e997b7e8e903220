// The part of the node contract about builds. It holds for a build however it ends: what a build makes is the business of
// packages/builder and packages/node.

import { type Client, Code } from "@connectrpc/connect";
import type { BuildEvent, NodeService } from "@skerry/wire/node";
import { expect, it } from "vitest";

interface BuildNode {
  readonly client: Client<typeof NodeService>;
  /** The spec of a sandbox, whose layers are the base of the builds. */
  spec(sandboxId: string): { layers?: string[] };
}

export function testBuilds(node: BuildNode): void {
  const start = (buildId: string) =>
    node.client.startBuild({
      spec: {
        buildId,
        templateId: "t",
        cacheScope: "contract",
        source: { case: "template", value: { name: "base", layers: node.spec("").layers ?? [] } },
        cpuCount: 1,
        memoryMb: 256,
        diskSizeMb: 64,
      },
    });
  const watch = async (buildId: string, from = 0n) => {
    const events: BuildEvent[] = [];
    for await (const event of node.client.watchBuild({ buildId, from })) events.push(event);
    return events;
  };
  const shown = (events: readonly BuildEvent[]) => events.map(({ number, event }) => `${number} ${event.case}`);

  it("number their events without gaps, and tell them again from any number on", async () => {
    await start("contract-1");
    await start("contract-1");
    const events = await watch("contract-1");
    expect(events.map(({ number }) => Number(number))).toEqual(events.map((_, index) => index));
    const outcomes = events.filter(({ event }) => event.case !== "line");
    expect(outcomes).toEqual([events.at(-1)]);
    for (const from of [0, 1, events.length - 1]) {
      expect(shown(await watch("contract-1", BigInt(from)))).toEqual(shown(events.slice(from)));
    }
    expect(await watch("contract-1", BigInt(events.length))).toEqual([]);
    await node.client.forgetBuild({ buildId: "contract-1" });
    await expect(watch("contract-1")).rejects.toMatchObject({ code: Code.NotFound });
    await start("contract-1");
    expect(shown(await watch("contract-1"))[0]).toBe(shown(events)[0]);
    await node.client.forgetBuild({ buildId: "contract-1" });
  });

  it("that are unknown are cancelled and forgotten already, and cannot be watched", async () => {
    for (const buildId of ["contract-2", ""]) {
      await node.client.cancelBuild({ buildId });
      await node.client.forgetBuild({ buildId });
      await expect(watch(buildId)).rejects.toMatchObject({ code: Code.NotFound });
    }
  });

  it("that are cancelled have an end, and can be forgotten at any time", async () => {
    await start("contract-3");
    await node.client.cancelBuild({ buildId: "contract-3" });
    expect((await watch("contract-3")).at(-1)?.event.case).not.toBe("line");
    await node.client.cancelBuild({ buildId: "contract-3" });
    await node.client.forgetBuild({ buildId: "contract-3" });
    await start("contract-4");
    await node.client.forgetBuild({ buildId: "contract-4" });
    await expect(watch("contract-4")).rejects.toMatchObject({ code: Code.NotFound });
  });

  it.each(["", "../x", "UPPER", "a/b", "-", "a".repeat(81)])("with the malformed id %j are refused", async (buildId) => {
    await expect(start(buildId)).rejects.toMatchObject({ code: Code.InvalidArgument });
    await expect(node.client.startBuild({})).rejects.toMatchObject({ code: Code.InvalidArgument });
  });
}
