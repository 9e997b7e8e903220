// The part of the node contract about what a node measures and writes down by itself.

import type { Client } from "@connectrpc/connect";
import type { NodeService } from "@skerry/wire/node";
import { expect, it } from "vitest";

export function testReports(node: { readonly client: Client<typeof NodeService> }): void {
  it("says what its sandboxes use, by its own clock, and nothing of the future", async () => {
    const { nowMs } = await node.client.readUsage({ afterMs: 0n });
    expect(Math.abs(Number(nowMs) - Date.now())).toBeLessThan(60_000);
    expect((await node.client.readUsage({ afterMs: nowMs + 3_600_000n })).rounds).toEqual([]);
  });

  it("repeats what its sandboxes reached until that is stored", async () => {
    const first = await node.client.readEgress({});
    expect(await node.client.readEgress({ source: "another", number: 1n })).toMatchObject(first.batch ? { batch: first.batch } : {});
    for (let batch = first.batch; batch; ) {
      const { source, number } = batch;
      batch = (await node.client.readEgress({ source, number })).batch;
      if (batch?.source === source) expect(batch.number).toBeGreaterThan(number);
    }
  });
}
