import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Code } from "@connectrpc/connect";
import { networkNames } from "@skerry/runtime";
import { runtimesFor } from "@skerry/testkit/depth";
import { waitUntil } from "@skerry/testkit/wait-until";
import { StartKind } from "@skerry/wire/node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type NodeUnderTest, startNode } from "./node-under-test.ts";

const CLOSED = { options: { allowInternetAccess: false } };

interface StoredRecord {
  readonly sandboxId: string;
  readonly state: string;
  readonly isRestored?: boolean;
  readonly slot: { readonly hostInterface: string };
  readonly options: object;
  readonly agent: { readonly digest: string; readonly version: string };
}

describe.each(runtimesFor("a sandbox's network policy"))("the network policy on %s", (runtime) => {
  let under: NodeUnderTest;
  beforeAll(async () => {
    under = await startNode(runtime, { poolSize: 1 });
  });
  afterAll(() => under?.[Symbol.asyncDispose]());

  let count = 0;
  const nextId = (letter: string, length: number) => {
    count += 1;
    return letter + String(count).padStart(length, "0");
  };
  const files = () =>
    readdirSync(join(under.config.dir, "sandboxes")).map((name) => join(under.config.dir, "sandboxes", name, "sandbox.json"));
  const records = () => files().map((file) => ({ file, record: JSON.parse(readFileSync(file, "utf8")) as StoredRecord }));
  const recordOf = (id: string) => {
    const found = records().find(({ record }) => record.sandboxId === id);
    if (!found) throw new Error(`no record of ${id}`);
    return found;
  };
  const create = async (overrides: object) => {
    const id = nextId("i", 20);
    const { startKind } = await under.client.createSandbox({ spec: { ...under.spec(id), ...overrides } });
    return { id, startKind };
  };
  const kill = (...ids: string[]) => Promise.all(ids.map((sandboxId) => under.client.killSandbox({ sandboxId })));
  const restricted = () => {
    const { table } = networkNames(under.config.instance);
    const answer = execFileSync("nft", ["-j", "list", "map", "inet", table, "restricted"], { encoding: "utf8" });
    const { nftables } = JSON.parse(answer) as { nftables: { map?: { elem?: [string, unknown][] } }[] };
    return nftables.flatMap(({ map }) => map?.elem?.map(([name]) => name) ?? []).toSorted();
  };
  const interfacesOf = (...ids: string[]) => ids.map((id) => recordOf(id).record.slot.hostInterface).toSorted();
  /** On gVisor, the first one only serves to take the image, from which the others are restored. */
  const isReady = ({ state, isRestored }: StoredRecord) => state === "pooled" && (runtime === "runc" || isRestored === true);
  const poolFull = () => waitUntil("the pool is full", () => records().some(({ record }) => isReady(record)));

  it("holds for a sandbox that is booted or claimed, and from one daemon to the next; a release removes it", async () => {
    const [open, closed] = [await create({}), await create(CLOSED)];
    await poolFull();
    const claimed = await create(CLOSED);
    expect(claimed.startKind).toBe(StartKind.CLAIM);
    expect(restricted()).toEqual(interfacesOf(closed.id, claimed.id));
    expect(recordOf(claimed.id).record.options).toEqual(CLOSED.options);
    await under.restart();
    expect(restricted()).toEqual(interfacesOf(closed.id, claimed.id));
    await kill(closed.id);
    expect(restricted()).toEqual(interfacesOf(claimed.id));
    await kill(open.id, claimed.id);
    expect(restricted()).toEqual([]);
  });

  it("holds after a pause, a resume and a snapshot, and is that of the create for what is started from the snapshot", async () => {
    const { id } = await create(CLOSED);
    const [paused, taken] = [nextId("m", 19), nextId("m", 19)];
    await under.client.pauseSandbox({ sandboxId: id, imageId: paused, memory: true });
    await waitUntil("its slot is released", () => restricted().length === 0);
    const image = JSON.parse(readFileSync(join(under.config.dir, "images", paused, "image.json"), "utf8")) as { options: object };
    expect(image.options).toEqual(CLOSED.options);
    await under.client.resumeSandbox({ spec: { ...under.spec(id), ...CLOSED, imageId: paused } });
    expect(restricted()).toEqual(interfacesOf(id));
    await under.client.snapshotSandbox({ sandboxId: id, imageId: taken, memory: true });
    expect(restricted()).toEqual(interfacesOf(id));
    const [fork, other] = [await create({ ...CLOSED, imageId: taken }), await create({ imageId: taken })];
    expect(restricted()).toEqual(interfacesOf(id, fork.id));
    await kill(id, fork.id, other.id);
    await under.client.deleteImage({ imageId: taken });
    expect(restricted()).toEqual([]);
  });

  it("changes while a sandbox runs, also of one that was claimed, and the next daemon has it", async () => {
    const { id } = await create({});
    await poolFull();
    const claimed = await create({});
    const set = (sandboxId: string, options: object) => under.client.setSandboxOptions({ sandboxId, options });
    await set(id, { denyOut: ["198.51.100.1"] });
    await set(claimed.id, CLOSED.options);
    expect(restricted()).toEqual(interfacesOf(id, claimed.id));
    expect(recordOf(id).record.options).toEqual({ denyOut: ["198.51.100.1"] });
    await under.restart();
    expect(restricted()).toEqual(interfacesOf(id, claimed.id));
    await set(claimed.id, { allowOut: ["1.1.1.1"] });
    expect(restricted()).toEqual(interfacesOf(id));
    // A change that fails leaves the former rules and the former record.
    await expect(set(id, { denyOut: ["no address"] })).rejects.toMatchObject({ code: Code.InvalidArgument });
    expect(restricted()).toEqual(interfacesOf(id));
    expect(recordOf(id).record.options).toEqual({ denyOut: ["198.51.100.1"] });
    await set(id, {});
    expect(restricted()).toEqual([]);
    await kill(id, claimed.id);
  });

  it("holds for a sandbox whose record is from before there were options", async () => {
    const [open, closed] = [await create({}), await create(CLOSED)];
    const before = interfacesOf(closed.id);
    await under.stop();
    for (const { id, allowInternetAccess } of [
      { ...open, allowInternetAccess: true },
      { ...closed, allowInternetAccess: false },
    ]) {
      const { file, record } = recordOf(id);
      const { options: _options, agent, ...rest } = record;
      const earlier = { agentDir: `/var/lib/skerry/agent/${agent.digest}`, agentVersion: agent.version, allowInternetAccess };
      writeFileSync(file, JSON.stringify({ ...rest, ...earlier, version: 2 }));
    }
    await under.start();
    expect(restricted()).toEqual(before);
    await kill(open.id, closed.id);
    expect(restricted()).toEqual([]);
  });

  it("refuses to start above a sandbox that has options of a later version, and leaves it as it is", async () => {
    const { id } = await create(CLOSED);
    await under.stop();
    const { file, record } = recordOf(id);
    writeFileSync(file, JSON.stringify({ ...record, options: { ...record.options, ofALaterVersion: 1 } }));
    await expect(under.start()).rejects.toMatchObject({ code: "record_unreadable", message: expect.stringContaining("ofALaterVersion") });
    expect(restricted()).toEqual(interfacesOf(id));
    writeFileSync(file, JSON.stringify(record));
    await under.start();
    await kill(id);
  });
});
