// What spec/node/node.proto promises to callers of a node, through the RPC client alone. The real node and `FakeNode` both run this suite.
// The tests in packages/node look at the host and inside sandboxes.

import type { Message, MessageInitShape } from "@bufbuild/protobuf";
import { type Client, Code, ConnectError } from "@connectrpc/connect";
import { NODE_ERRORS, type NodeErrorCode } from "@skerry/wire";
import { ErrorDetailSchema, type NodeService, type SandboxSpecSchema, StartKind } from "@skerry/wire/node";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { testBuilds } from "./build-contract.ts";
import { codeOf } from "./code-of.ts";
import { testOptions } from "./options-contract.ts";
import { testReports } from "./reports-contract.ts";
import { testVolumes } from "./volume-contract.ts";

type SpecInit = Exclude<MessageInitShape<typeof SandboxSpecSchema>, Message>;

export interface ContractNode extends AsyncDisposable {
  readonly client: Client<typeof NodeService>;
  /** The spec of a sandbox that this node can start from its layers. */
  spec(sandboxId: string): SpecInit;
}

export interface NodeContractOptions {
  readonly name: string;
  /** Whether the default runtime writes memory to images. */
  readonly keepsMemory: boolean;
  /** Starts a node without sandboxes and images. Its warm pool must be off, because a claimed sandbox has another start kind. */
  start(): Promise<ContractNode>;
}

export function nodeContract(options: NodeContractOptions): void {
  describe(`node contract: ${options.name}`, () => {
    const node = new Caller(options);
    beforeAll(() => node.start());
    afterAll(() => node.stop());
    afterEach(async () => {
      await node.clear();
      expect(await node.sandboxes()).toEqual([]);
      expect(await node.images()).toEqual([]);
      expect(await node.client.listSandboxes({})).toMatchObject({ unaskedEnds: [], kept: [] });
      expect((await node.client.getInfo({})).sandboxCount).toBe(0);
    });

    describe("create and kill", () => testCreateAndKill(node));
    describe("pause and resume", () => testPauseAndResume(node));
    describe("options", () => testOptions(node));
    describe("snapshots", () => testSnapshots(node));
    describe("refusals", () => testRefusals(node));
    describe("calls for one sandbox at once", () => testTurns(node));
    describe("builds", () => testBuilds(node));
    describe("volumes", () => testVolumes(node));
    describe("reports", () => testReports(node));
  });
}

const BOOTED = { startKind: StartKind.BOOT, memoryLostReason: "" };
const MALFORMED_SANDBOX_IDS = ["", "../etc", "UPPER", "a/b", "x".repeat(65), `i${"0".repeat(20)}-6532622b`];
const MALFORMED_IMAGE_IDS = ["", "short", "M".repeat(20), "m".repeat(21), "../../../../../../et", `${"m".repeat(20)}\n`];

/** Calls the node under test, with ids that no earlier test has used. */
class Caller {
  readonly #options: NodeContractOptions;
  #node: ContractNode | undefined;
  #ids = 0;

  constructor(options: NodeContractOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    this.#node = await this.#options.start();
  }

  async stop(): Promise<void> {
    await this.#node?.[Symbol.asyncDispose]();
  }

  get client(): Client<typeof NodeService> {
    if (!this.#node) throw new Error("the node has not started");
    return this.#node.client;
  }

  get keepsMemory(): boolean {
    return this.#options.keepsMemory;
  }

  /** How a sandbox starts from an image that was requested with memory. */
  get restored() {
    return this.keepsMemory ? { startKind: StartKind.RESTORE, memoryLostReason: "" } : BOOTED;
  }

  newSandboxId(): string {
    this.#ids += 1;
    return `i${String(this.#ids).padStart(20, "0")}`;
  }

  newImageId(): string {
    this.#ids += 1;
    return `m${String(this.#ids).padStart(19, "0")}`;
  }

  spec(sandboxId: string, overrides: SpecInit = {}): SpecInit {
    return { ...this.#node?.spec(sandboxId), ...overrides };
  }

  create(sandboxId: string, overrides: SpecInit = {}) {
    return this.client.createSandbox({ spec: this.spec(sandboxId, overrides) });
  }

  async createNew(overrides: SpecInit = {}): Promise<string> {
    const sandboxId = this.newSandboxId();
    await this.create(sandboxId, overrides);
    return sandboxId;
  }

  async kill(sandboxId: string): Promise<boolean> {
    return (await this.client.killSandbox({ sandboxId })).existed;
  }

  pause(sandboxId: string, imageId: string, { memory = true, requireHealthyGuest = false } = {}) {
    return this.client.pauseSandbox({ sandboxId, imageId, memory, requireHealthyGuest });
  }

  resume(sandboxId: string, imageId: string, overrides: SpecInit = {}) {
    return this.client.resumeSandbox({ spec: this.spec(sandboxId, { ...overrides, imageId }) });
  }

  snapshot(sandboxId: string, imageId: string, { memory = true, sourceImageId = "" } = {}) {
    return this.client.snapshotSandbox({ sandboxId, imageId, memory, sourceImageId });
  }

  async deleteImage(imageId: string): Promise<boolean> {
    return (await this.client.deleteImage({ imageId })).existed;
  }

  async sandboxes(): Promise<string[]> {
    const { sandboxes } = await this.client.listSandboxes({});
    return sandboxes.map(({ sandboxId, state }) => `${sandboxId} ${state}`).sort();
  }

  async images(): Promise<string[]> {
    return [...(await this.client.listImages({})).imageIds].sort();
  }

  async clear(): Promise<void> {
    for (const { sandboxId } of (await this.client.listSandboxes({})).sandboxes) await this.kill(sandboxId);
    for (const imageId of await this.images()) await this.deleteImage(imageId);
  }
}

function testCreateAndKill(node: Caller): void {
  it("describes an empty node", async () => {
    const info = await node.client.getInfo({});
    expect(info).toMatchObject({ sandboxCount: 0, keepsMemory: node.keepsMemory, clusterId: "" });
    for (const text of [info.nodeId, info.agentVersion, info.runtimes[0]]) expect(text).toMatch(/./);
    expect(info.cpuCount).toBeGreaterThan(0);
    expect(info.memoryTotalBytes).toBeGreaterThan(0n);
  });

  it("boots a sandbox with the default runtime, and lists and counts it", async () => {
    const { runtimes, agentVersion } = await node.client.getInfo({});
    const id = node.newSandboxId();
    expect(await node.create(id)).toMatchObject({ runtime: runtimes[0], agentVersion, ...BOOTED });
    expect(await node.sandboxes()).toEqual([`${id} running`]);
    expect((await node.client.getInfo({})).sandboxCount).toBe(1);
    // The node checks the id before it looks for the image.
    for (const imageId of ["", node.newImageId()]) expect(await codeOf(node.create(id, { imageId }))).toBe(Code.AlreadyExists);
    expect(await node.sandboxes()).toEqual([`${id} running`]);
  });

  it("kills a sandbox once, after which its id is free", async () => {
    const id = await node.createNew();
    expect(await node.kill(id)).toBe(true);
    expect(await node.sandboxes()).toEqual([]);
    expect(await node.kill(id)).toBe(false);
    expect(await node.create(id)).toMatchObject(BOOTED);
    expect(await node.sandboxes()).toEqual([`${id} running`]);
  });

  it("succeeds in killing and deleting what does not exist", async () => {
    for (const id of [node.newSandboxId(), "../etc", "UPPER"]) expect(await node.kill(id), id).toBe(false);
    for (const id of [node.newImageId(), ...MALFORMED_IMAGE_IDS]) expect(await node.deleteImage(id), id).toBe(false);
    expect(await node.client.deleteLayer({ digest: `sha256:${"0".repeat(64)}` })).toMatchObject({ removed: false });
    for (const digest of ["", "../etc"]) expect(await codeOf(node.client.deleteLayer({ digest })), digest).toBe(Code.InvalidArgument);
  });
}

function testPauseAndResume(node: Caller): void {
  it("pauses a sandbox to an image, and answers a repeated pause the same", async () => {
    const [id, imageId] = [await node.createNew(), node.newImageId()];
    const paused = await node.pause(id, imageId, { requireHealthyGuest: true });
    expect(paused).toMatchObject({ hasMemory: node.keepsMemory, agentUnresponsive: false });
    expect(paused.sizeBytes > 0n).toBe(node.keepsMemory);
    expect(await node.sandboxes()).toEqual([]);
    expect(await node.images()).toEqual([imageId]);
    expect(await node.pause(id, imageId, { requireHealthyGuest: true })).toEqual(paused);
    expect(await codeOf(node.pause(id, node.newImageId()))).toBe(Code.NotFound);
    expect(await codeOf(node.snapshot(id, node.newImageId()))).toBe(Code.NotFound);
    // What the node still has of a paused sandbox's container belongs to nobody, and neither id may kill it.
    for (const gone of ["", id]) expect(await node.kill(gone), gone).toBe(false);
    expect(await node.images()).toEqual([imageId]);

    expect(await node.deleteImage(imageId)).toBe(true);
    expect(await node.deleteImage(imageId)).toBe(false);
    expect(await node.images()).toEqual([]);
    expect(await codeOf(node.resume(id, imageId))).toBe(Code.NotFound);
    expect(await codeOf(node.pause(id, imageId))).toBe(Code.NotFound);
  });

  it("resumes a sandbox from its image and removes the image", async () => {
    const { runtimes, agentVersion } = await node.client.getInfo({});
    const [id, imageId] = [await node.createNew(), node.newImageId()];
    await node.pause(id, imageId);
    expect(await node.resume(id, imageId)).toMatchObject({ runtime: runtimes[0], agentVersion, ...node.restored });
    expect(await node.sandboxes()).toEqual([`${id} running`]);
    expect(await node.images()).toEqual([]);
    // A caller that lost the answer asks again with the same image. Another image means that the caller is wrong about the sandbox.
    const again = await node.resume(id, imageId);
    expect(again).toMatchObject({ runtime: runtimes[0], agentVersion, memoryLostReason: "" });
    expect(again).toMatchObject(node.restored);
    for (const other of [node.newImageId(), ""]) expect(await codeOf(node.resume(id, other))).toBe(Code.AlreadyExists);
    expect(await codeOf(node.create(node.newSandboxId(), { imageId }))).toBe(Code.NotFound);
    expect(await node.sandboxes()).toEqual([`${id} running`]);
  });

  it("boots a sandbox when its image has no memory or the caller does not want it", async () => {
    const [id, full, disk] = [await node.createNew(), node.newImageId(), node.newImageId()];
    expect(await node.pause(id, full)).toMatchObject({ hasMemory: node.keepsMemory });
    expect(await node.resume(id, full, { withoutMemory: true })).toMatchObject(BOOTED);
    expect(await node.pause(id, disk, { memory: false })).toMatchObject({ hasMemory: false, agentUnresponsive: false, sizeBytes: 0n });
    expect(await node.images()).toEqual([disk]);
    expect(await node.resume(id, disk)).toMatchObject(BOOTED);
    expect(await node.images()).toEqual([]);
  });
}

function testSnapshots(node: Caller): void {
  it("writes a running sandbox to an image, from which others start", async () => {
    const [id, imageId] = [await node.createNew(), node.newImageId()];
    const taken = await node.snapshot(id, imageId);
    expect(taken.hasMemory).toBe(node.keepsMemory);
    expect(taken.sizeBytes > 0n).toBe(node.keepsMemory);
    expect(await node.sandboxes()).toEqual([`${id} running`]);
    expect(await node.snapshot(id, imageId)).toEqual(taken);
    expect(await codeOf(node.pause(id, imageId))).toBe(Code.AlreadyExists);
    expect(await codeOf(node.snapshot(id, node.newImageId(), { sourceImageId: imageId }))).toBe(Code.NotFound);

    const others = [node.newSandboxId(), node.newSandboxId()] as const;
    const creates = [node.create(others[0], { imageId }), node.create(others[1], { imageId, withoutMemory: true })];
    expect(await Promise.all(creates)).toMatchObject([node.restored, BOOTED]);
    expect(await node.images()).toEqual([imageId]);
    expect(await node.deleteImage(imageId)).toBe(true);
    expect(await node.images()).toEqual([]);
    expect(await node.sandboxes()).toEqual([id, ...others].map((each) => `${each} running`));
    expect(await codeOf(node.create(node.newSandboxId(), { imageId }))).toBe(Code.NotFound);
  });

  it("writes the disk alone when the caller wants no memory; the image outlives the sandbox", async () => {
    const [id, imageId] = [await node.createNew(), node.newImageId()];
    expect(await node.snapshot(id, imageId, { memory: false })).toMatchObject({ hasMemory: false, sizeBytes: 0n });
    expect(await node.sandboxes()).toEqual([`${id} running`]);
    expect(await node.kill(id)).toBe(true);
    expect(await node.images()).toEqual([imageId]);
    expect(await node.create(node.newSandboxId(), { imageId })).toMatchObject(BOOTED);
    expect(await node.images()).toEqual([imageId]);
  });

  it("takes images of a paused sandbox, which can still be resumed", async () => {
    const [id, paused, full, disk] = [await node.createNew(), node.newImageId(), node.newImageId(), node.newImageId()];
    const { hasMemory, sizeBytes } = await node.pause(id, paused);
    const taken = await node.snapshot(id, full, { sourceImageId: paused });
    expect(taken).toMatchObject({ hasMemory, sizeBytes });
    expect(await node.snapshot(id, full, { sourceImageId: paused })).toEqual(taken);
    const about = { memory: false, sourceImageId: paused };
    expect(await node.snapshot(id, disk, about)).toMatchObject({ hasMemory: false, sizeBytes: 0n });
    expect(await node.images()).toEqual([paused, full, disk]);
    expect(await node.sandboxes()).toEqual([]);

    const others = [full, disk].map((imageId) => node.create(node.newSandboxId(), { imageId }));
    expect(await Promise.all([node.resume(id, paused), ...others])).toMatchObject([node.restored, node.restored, BOOTED]);
    expect(await node.images()).toEqual([full, disk]);
  });
}

function testRefusals(node: Caller): void {
  it("refuses to start a sandbox without a valid id, image or runtime, and holds nothing of it", async () => {
    const imageId = node.newImageId();
    for (const method of ["createSandbox", "resumeSandbox"] as const) {
      const start = (id: string, overrides: SpecInit) => codeOf(node.client[method]({ spec: node.spec(id, overrides) }));
      for (const id of MALFORMED_SANDBOX_IDS) expect(await start(id, { imageId }), id).toBe(Code.InvalidArgument);
      expect(await codeOf(node.client[method]({}))).toBe(Code.InvalidArgument);
      expect(await start(node.newSandboxId(), { imageId })).toBe(Code.NotFound);
    }
    expect(await codeOf(node.create(""))).toBe(Code.InvalidArgument);
    expect(await codeOf(node.resume(node.newSandboxId(), ""))).toBe(Code.NotFound);
    expect(await codeOf(node.create(node.newSandboxId(), { runtime: "vmware" }))).toBe(Code.FailedPrecondition);
    expect(await node.sandboxes()).toEqual([]);
  });

  it("says in a detail of each error which failure it was", async () => {
    const id = await node.createNew();
    const missing = node.newImageId();
    const failures: readonly [NodeErrorCode, () => Promise<unknown>][] = [
      ["invalid_argument", () => node.client.createSandbox({})],
      ["invalid_argument", () => node.pause(id, "short")],
      ["already_exists", () => node.create(id)],
      ["runtime_unavailable", () => node.create(node.newSandboxId(), { runtime: "vmware" })],
      ["image_missing", () => node.resume(node.newSandboxId(), missing)],
      ["image_missing", () => node.snapshot(id, node.newImageId(), { sourceImageId: missing })],
      ["sandbox_gone", () => node.pause(node.newSandboxId(), missing)],
    ];
    for (const [code, call] of failures) {
      const error = await call().then(() => undefined, ConnectError.from);
      expect(error?.findDetails(ErrorDetailSchema)).toMatchObject([{ code }]);
      expect(error?.code).toBe(NODE_ERRORS[code]);
    }
  });

  it("refuses to start a sandbox without options, and holds nothing of it", async () => {
    const [id, imageId] = [await node.createNew(), node.newImageId()];
    await node.pause(id, imageId);
    const without = (overrides: SpecInit) => {
      const { options: _options, ...spec } = node.spec(node.newSandboxId(), overrides);
      return spec;
    };
    for (const overrides of [{}, { imageId }]) {
      expect(await codeOf(node.client.createSandbox({ spec: without(overrides) }))).toBe(Code.InvalidArgument);
      expect(await codeOf(node.client.resumeSandbox({ spec: without(overrides) }))).toBe(Code.InvalidArgument);
    }
    expect(await node.sandboxes()).toEqual([]);
    expect(await node.images()).toEqual([imageId]);
  });

  it("refuses to write an image without a valid id or source, and leaves the sandbox running", async () => {
    const id = await node.createNew();
    for (const imageId of MALFORMED_IMAGE_IDS) {
      for (const each of [id, node.newSandboxId()]) {
        expect(await codeOf(node.pause(each, imageId)), imageId).toBe(Code.InvalidArgument);
        expect(await codeOf(node.snapshot(each, imageId)), imageId).toBe(Code.InvalidArgument);
      }
    }
    for (const unknown of [node.newSandboxId(), ...MALFORMED_SANDBOX_IDS]) {
      expect(await codeOf(node.pause(unknown, node.newImageId())), unknown).toBe(Code.NotFound);
      expect(await codeOf(node.snapshot(unknown, node.newImageId())), unknown).toBe(Code.NotFound);
    }
    for (const sourceImageId of [node.newImageId(), ...MALFORMED_IMAGE_IDS.slice(1)]) {
      expect(await codeOf(node.snapshot(id, node.newImageId(), { sourceImageId })), sourceImageId).toBe(Code.NotFound);
    }
    expect(await node.sandboxes()).toEqual([`${id} running`]);
    expect(await node.images()).toEqual([]);
  });
}

/**
 * Calls for one sandbox take turns in the order in which they arrive, so the outcome does not depend on timing. A client in the same
 * process delivers its calls in the order in which they are made.
 */
function testTurns(node: Caller): void {
  it("creates a sandbox once, and kills it once", async () => {
    const id = node.newSandboxId();
    const creates = await Promise.all([1, 2].map(() => codeOf(node.create(id))));
    expect(creates).toEqual([undefined, Code.AlreadyExists]);
    expect(await Promise.all([1, 2].map(() => node.kill(id)))).toEqual([true, false]);
    expect(await node.sandboxes()).toEqual([]);
  });

  it("finishes a create before a kill", async () => {
    const id = node.newSandboxId();
    const [created, existed] = await Promise.all([node.create(id), node.kill(id)]);
    expect(created).toMatchObject(BOOTED);
    expect(existed).toBe(true);
    expect(await node.sandboxes()).toEqual([]);
  });

  it("pauses a sandbox once, and resumes it once", async () => {
    const [id, imageId, last] = [await node.createNew(), node.newImageId(), node.newImageId()];
    const [paused, again] = await Promise.all([node.pause(id, imageId), node.pause(id, imageId)]);
    expect(again).toEqual(paused);
    expect(await node.images()).toEqual([imageId]);
    const resumes = await Promise.all([1, 2].map(() => codeOf(node.resume(id, imageId))));
    expect(resumes).toEqual([undefined, undefined]);
    expect(await node.sandboxes()).toEqual([`${id} running`]);
    const pauses = await Promise.all([last, node.newImageId()].map((each) => codeOf(node.pause(id, each))));
    expect(pauses).toEqual([undefined, Code.NotFound]);
    expect(await node.images()).toEqual([last]);
  });

  it("finishes a pause, a resume and a snapshot before a kill", async () => {
    const [id, paused, taken] = [await node.createNew(), node.newImageId(), node.newImageId()];
    expect(await Promise.all([codeOf(node.pause(id, paused)), node.kill(id)])).toEqual([undefined, false]);
    expect(await node.images()).toEqual([paused]);
    const calls = [codeOf(node.resume(id, paused)), codeOf(node.snapshot(id, taken)), node.kill(id)];
    expect(await Promise.all(calls)).toEqual([undefined, undefined, true]);
    expect(await node.sandboxes()).toEqual([]);
    expect(await node.images()).toEqual([taken]);
  });
}
