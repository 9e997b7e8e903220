import { randomBytes } from "node:crypto";
import { availableParallelism } from "node:os";
import { runtimesFor } from "@skerry/testkit/depth";
import { sandboxIdFrom } from "@skerry/wire";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type NodeUnderTest, startNode } from "./node-under-test.ts";

/** Several times as many as start at once. */
const BURST = 12 * availableParallelism();

describe.each(runtimesFor("turns of teams", "runc"))("a node with more starts than it can do at once (%s)", (runtime) => {
  let under: NodeUnderTest;
  beforeAll(async () => {
    under = await startNode(runtime);
  });
  afterAll(async () => await under[Symbol.asyncDispose]());

  it("starts the one sandbox of a team before the rest of another team's burst", async () => {
    const ended: string[] = [];
    const create = async (sandboxId: string, turnGroup: string) => {
      await under.client.createSandbox({ spec: { ...under.spec(sandboxId), turnGroup } });
      ended.push(turnGroup);
    };
    const ids = Array.from({ length: BURST + 1 }, () => sandboxIdFrom(randomBytes));
    // The last one in the queue.
    await Promise.all(ids.map((id, at) => create(id, at < BURST ? "burst" : "other")));
    expect(ended).toHaveLength(BURST + 1);
    expect(ended.indexOf("other")).toBeLessThan((3 * BURST) / 4);
    await Promise.all(ids.map((sandboxId) => under.client.killSandbox({ sandboxId })));
  });
});
