// The part of the node contract about options that change. What they do is tested with the module that acts on each.

import { type Client, Code } from "@connectrpc/connect";
import { changedAfter, encodeOptions, type NodeService, withHeaderRules } from "@skerry/wire/node";
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

  it("says which secrets it has for the rules of a sandbox", async () => {
    const id = await node.createNew();
    const version = async () => (await node.client.listSandboxes({})).sandboxes.find(({ sandboxId }) => sandboxId === id)?.secretsVersion;
    const secrets = { version: "one", authoritySeed: "seed", rules: [{ host: "a.test", headers: { A: "b" } }] };
    expect(await version()).toBeUndefined();
    const options = encodeOptions(withHeaderRules({}, "x", [{ host: "a.test", headers: { A: "b" } }]));
    await set(id, options);
    expect(await version()).toBe("");
    await node.client.setSandboxOptions({ sandboxId: id, options, secrets });
    expect(await version()).toBe("one");
    await node.client.setSandboxSecrets({ sandboxId: id, secrets: { ...secrets, version: "two" } });
    expect(await version()).toBe("two");
    await set(id, {});
    expect(await version()).toBeUndefined();
    expect(await codeOf(node.client.setSandboxSecrets({ sandboxId: id }))).toBe(Code.InvalidArgument);
    expect(await codeOf(node.client.setSandboxSecrets({ sandboxId: node.newSandboxId(), secrets }))).toBe(Code.NotFound);
  });

  it("keeps its options when an earlier change arrives late", async () => {
    const id = await node.createNew();
    const needsSecrets = async () =>
      (await node.client.listSandboxes({})).sandboxes.find(({ sandboxId }) => sandboxId === id)?.secretsVersion !== undefined;
    const rules = withHeaderRules({}, "x", [{ host: "a.test", headers: { A: "b" } }]);
    const first = changedAfter({}, {});
    const second = changedAfter(first, rules);
    await set(id, encodeOptions(second));
    for (const late of [{}, first]) await set(id, encodeOptions(late));
    expect(await needsSecrets()).toBe(true);
    // The same change again, and a later one, are no earlier ones.
    await set(id, encodeOptions(changedAfter(first, {})));
    expect(await needsSecrets()).toBe(false);
    await set(id, encodeOptions(changedAfter(second, rules)));
    expect(await needsSecrets()).toBe(true);
  });

  it("finishes a change before a pause and a kill", async () => {
    const id = await node.createNew();
    const calls = [set(id, {}), node.pause(id, node.newImageId()), set(id, {})].map(codeOf);
    expect(await Promise.all(calls)).toEqual([undefined, undefined, Code.NotFound]);
  });
}
