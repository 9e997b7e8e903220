// The part of the node contract about options that change. What they do is tested with the module that acts on each.

import { type Client, Code } from "@connectrpc/connect";
import type { NodeService } from "@skerry/wire/node";
import { expect, it } from "vitest";
import { codeOf } from "./code-of.ts";

interface OptionsNode {
  readonly client: Client<typeof NodeService>;
  newSandboxId(): string;
  newImageId(): string;
  createNew(): Promise<string>;
  sandboxes(): Promise<string[]>;
  pause(sandboxId: string, imageId: string): Promise<unknown>;
}

export function testOptions(node: OptionsNode): void {
  const set = (sandboxId: string, options: object | undefined) =>
    node.client.setSandboxOptions({ sandboxId, ...(options ? { options } : {}) });

  it("changes the options of a running sandbox, as often as they are sent", async () => {
    const id = await node.createNew();
    for (let times = 0; times < 3; times += 1) await set(id, {});
    expect(await node.sandboxes()).toEqual([`${id} running`]);
  });

  it("refuses a change without options, and one of a sandbox that does not run here", async () => {
    const [id, imageId] = [await node.createNew(), node.newImageId()];
    expect(await codeOf(set(id, undefined))).toBe(Code.InvalidArgument);
    await node.pause(id, imageId);
    for (const gone of [id, node.newSandboxId(), "", "../etc"]) expect(await codeOf(set(gone, {})), gone).toBe(Code.NotFound);
  });

  it("finishes a change before a pause and a kill", async () => {
    const id = await node.createNew();
    const calls = [set(id, {}), node.pause(id, node.newImageId()), set(id, {})].map(codeOf);
    expect(await Promise.all(calls)).toEqual([undefined, undefined, Code.NotFound]);
  });
}
