import { Code, ConnectError, createClient, createRouterTransport, type HandlerContext, type ServiceImpl } from "@connectrpc/connect";
import { KeyedLock } from "@skerry/base";
import {
  NodeService,
  type PauseSandboxRequest,
  type SandboxSpec,
  type SnapshotSandboxRequest,
  StartKind,
  type VolumeMount,
} from "@skerry/wire/node";
import { FakeBuilds } from "./fake-builds.ts";
import { isLate, listedSandbox } from "./fake-listing.ts";
import { assertImageId, assertRuntime, checkedSpec, RUNTIMES, rpcError } from "./fake-refusals.ts";
import { FakeReports } from "./fake-reports.ts";
import { FakeVolumes, mountsKey } from "./fake-volumes.ts";

const AGENT_VERSION = "0.6.4";

/** The behaviour of a method: `ok`, a failure with this code, or no answer until `release()`. */
export type FakeBehaviour = "ok" | "hang" | Code;

export interface FakeSandbox {
  spec: SandboxSpec;
  state: "creating" | "running" | "snapshotting" | "pausing" | "killing";
  /** Why the last snapshot lost its memory. */
  memoryLostReason?: string;
  /** Its agent does not answer. */
  isSilent?: boolean;
  /** Why its memory cannot be saved. */
  unsavable?: string;
  /** The answer to its start, which a repeated resume gets again. */
  started?: FakeStart;
}

export interface FakeStart {
  readonly runtime: string;
  readonly agentVersion: string;
  readonly startKind: StartKind;
  readonly memoryLostReason: string;
}

export interface FakeImage {
  readonly sandboxId: string;
  /** The image was taken by a snapshot. Only the image of a paused sandbox can be the source of another image. */
  readonly isSnapshot?: boolean;
  readonly hasMemory: boolean;
  readonly agentUnresponsive: boolean;
  /** The volumes of its sandbox. */
  readonly mounts?: readonly VolumeMount[];
}

export type FakeMethod =
  | "create"
  | "setOptions"
  | "setSecrets"
  | "kill"
  | "list"
  | "pause"
  | "resume"
  | "snapshot"
  | "deleteImage"
  | "deleteLayer";

/**
 * A node that keeps sandboxes and images in memory and runs nothing, for tests of the control plane. It passes the same contract as the
 * real node (contracts/node-contract.ts). Beyond the contract, a test can make a method fail, hang, or lose its answer.
 */
export class FakeNode extends FakeReports {
  readonly nodeId: string;
  readonly url: string;
  readonly held = new Map<string, FakeSandbox>();
  readonly unaskedEnds = new Map<string, "exited" | "memory">();
  /** By sandbox id: the image that the node made by itself. */
  readonly kept = new Map<string, { readonly imageId: string; readonly reason: "exited" | "memory" }>();
  readonly images = new Map<string, FakeImage>();
  /** Digests of layers that no sandbox and no image of it refers to. */
  readonly unusedLayers = new Set<string>();
  readonly builds = new FakeBuilds();
  readonly volumes = new FakeVolumes(() => this.#mounts());
  readonly calls: { readonly method: FakeMethod; readonly sandboxId: string }[] = [];
  create: FakeBehaviour = "ok";
  kill: FakeBehaviour = "ok";
  setOptions: FakeBehaviour = "ok";
  list: FakeBehaviour = "ok";
  pause: FakeBehaviour = "ok";
  resume: FakeBehaviour = "ok";
  snapshot: FakeBehaviour = "ok";
  deleteImage: FakeBehaviour = "ok";
  deleteLayer: FakeBehaviour = "ok";
  /** Methods that do their work and then lose the answer: the call fails, or hangs until `release()`. */
  readonly lost = new Map<FakeMethod, Exclude<FakeBehaviour, "ok">>();
  /** Does not say who it is. */
  isDeaf = false;
  /** A failed create leaves its sandbox behind. */
  leavesHalfMade = false;
  killDelayMs = 0;
  /** Ends a sandbox without a request, and keeps its disk in an image. Returns the id of the image. */
  end(sandboxId: string, reason: "exited" | "memory" = "exited"): string {
    const imageId = `k${sandboxId.slice(-19).padStart(19, "0")}`;
    this.held.delete(sandboxId);
    this.images.set(imageId, { sandboxId, hasMemory: false, agentUnresponsive: false });
    this.kept.set(sandboxId, { imageId, reason });
    return imageId;
  }

  /** False: behaves like runc. */
  keepsMemory = true;
  /** Why the next starts do not restore memory; "" when they do. */
  memoryLostReason = "";
  readonly #turns = new KeyedLock();
  /** By sandbox id: lets its hanging create continue. */
  readonly #hurry = new Map<string, () => void>();
  #released = Promise.withResolvers<void>();
  #hanging = 0;

  constructor(nodeId: string) {
    super();
    this.nodeId = nodeId;
    this.url = `http://${nodeId}.test`;
  }

  get client() {
    const service = this.service;
    return createClient(
      NodeService,
      createRouterTransport(({ service: add }) => {
        add(NodeService, service);
      }),
    );
  }

  /** Number of hanging calls, without those whose callers gave up. */
  get hanging(): number {
    return this.#hanging;
  }

  /** Lets all hanging calls continue. */
  release(): void {
    this.#released.resolve();
    this.#released = Promise.withResolvers<void>();
  }

  countCalls(method: FakeMethod, sandboxId?: string): number {
    return this.calls.filter((call) => call.method === method && (sandboxId === undefined || call.sandboxId === sandboxId)).length;
  }

  #info() {
    return {
      nodeId: this.nodeId,
      agentVersion: AGENT_VERSION,
      runtimes: [...RUNTIMES],
      cpuCount: 2,
      memoryTotalBytes: 8n * 2n ** 30n,
      sandboxCount: this.held.size,
      keepsMemory: this.keepsMemory,
      machine: { cpuArchitecture: "x64", cpuModelName: "Fake", cpuPercent: 12.5, memoryUsedBytes: 2n ** 30n, diskTotalBytes: 2n ** 40n },
    };
  }

  /** The service, for any transport that a test needs. */
  get service(): ServiceImpl<typeof NodeService> {
    return {
      getInfo: () => {
        if (this.isDeaf) throw new ConnectError("the node does not answer", Code.Unavailable);
        return this.#info();
      },
      createSandbox: ({ spec }, context) => this.#answer("create", spec?.sandboxId, () => this.#create(spec, context)),
      killSandbox: ({ sandboxId }, context) => this.#answer("kill", sandboxId, () => this.#kill(sandboxId, context)),
      setSandboxOptions: ({ sandboxId, options, secrets }, context) =>
        this.#answer("setOptions", sandboxId, async () => {
          if (!options) throw rpcError("invalid_argument", "no options");
          return await this.#turns.run(sandboxId, async () => {
            await this.#behave(this.setOptions, context.signal);
            const sandbox = this.#running(sandboxId);
            if (!isLate(sandbox.spec, options)) sandbox.spec = { ...sandbox.spec, options, secrets };
            return {};
          });
        }),
      setSandboxSecrets: ({ sandboxId, secrets }) =>
        this.#answer("setSecrets", sandboxId, async () => {
          if (!secrets) throw rpcError("invalid_argument", "no secrets");
          Object.assign(this.#running(sandboxId).spec, { secrets });
          return {};
        }),
      pauseSandbox: (request, context) => this.#answer("pause", request.sandboxId, () => this.#pause(request, context)),
      resumeSandbox: ({ spec }, context) => this.#answer("resume", spec?.sandboxId, () => this.#resume(spec, context)),
      snapshotSandbox: (request, context) => this.#answer("snapshot", request.sandboxId, () => this.#snapshot(request, context)),
      deleteImage: ({ imageId }, context) =>
        this.#answer("deleteImage", imageId, async () => {
          await this.#behave(this.deleteImage, context.signal);
          return { existed: this.images.delete(imageId) };
        }),
      listImages: async (_request, context) => {
        await this.#behave(this.list, context.signal);
        const diskOnlyIds = [...this.images].flatMap(([imageId, { hasMemory }]) => (hasMemory ? [] : [imageId]));
        return { imageIds: [...this.images.keys()], diskOnlyIds };
      },
      ...this.builds.calls,
      ...this.volumes.service,
      listUnusedLayers: async (_request, context) => {
        await this.#behave(this.list, context.signal);
        return { digests: [...this.unusedLayers] };
      },
      deleteLayer: ({ digest }, context) =>
        this.#answer("deleteLayer", digest, async () => {
          await this.#behave(this.deleteLayer, context.signal);
          if (!/^sha256:[0-9a-f]{64}$/.test(digest)) throw rpcError("invalid_argument", "no layer has such a digest");
          return { removed: this.unusedLayers.delete(digest) };
        }),
      ...this.reportCalls((signal) => this.#behave(this.list, signal)),
      listSandboxes: async (_request, context) => {
        this.calls.push({ method: "list", sandboxId: "" });
        await this.#behave(this.list, context.signal);
        return {
          sandboxes: [...this.held].map(([sandboxId, held]) => listedSandbox(sandboxId, held)),
          unaskedEnds: [...this.unaskedEnds].map(([sandboxId, reason]) => ({ sandboxId, reason })),
          kept: [...this.kept].flatMap(([sandboxId, { imageId, reason }]) => {
            const image = this.images.get(imageId);
            return image ? [{ sandboxId, imageId, reason, hasMemory: image.hasMemory, sizeBytes: encodeImage(image).sizeBytes }] : [];
          }),
        };
      },
    };
  }

  async #answer<T>(method: FakeMethod, sandboxId: string | undefined, work: () => Promise<T>): Promise<T> {
    this.calls.push({ method, sandboxId: sandboxId ?? "" });
    const answer = await work();
    // A caller that gave up does not undo the work.
    await this.#behave(this.lost.get(method) ?? "ok", new AbortController().signal);
    return answer;
  }

  async #create(unchecked: SandboxSpec | undefined, { signal }: HandlerContext): Promise<FakeStart> {
    const spec = checkedSpec(unchecked);
    return await this.#turns.run(spec.sandboxId, async () => {
      this.#assertNotHeld(spec.sandboxId);
      const image = spec.imageId === "" ? undefined : this.#imageOf(spec);
      if (!image) assertRuntime(spec.runtime);
      this.volumes.assertMounts(spec);
      const sandbox: FakeSandbox = { spec, state: "creating" };
      this.held.set(spec.sandboxId, sandbox);
      const hurried = Promise.withResolvers<void>();
      this.#hurry.set(spec.sandboxId, hurried.resolve);
      try {
        await this.#behave(this.create, signal, hurried.promise);
      } catch (error) {
        if (!this.leavesHalfMade) this.held.delete(spec.sandboxId);
        throw error;
      } finally {
        this.#hurry.delete(spec.sandboxId);
      }
      return this.#finish(sandbox, image);
    });
  }

  async #kill(sandboxId: string, { signal }: HandlerContext) {
    // On a real node a kill waits for the create, which ends by itself. A create that hangs here ends only with `release()`.
    this.#hurry.get(sandboxId)?.();
    return await this.#turns.run(sandboxId, async () => {
      await this.#behave(this.kill, signal);
      if (this.killDelayMs > 0) await new Promise((resolve) => setTimeout(resolve, this.killDelayMs));
      return { existed: this.held.delete(sandboxId) };
    });
  }

  async #pause(request: PauseSandboxRequest, { signal }: HandlerContext) {
    const { sandboxId, imageId } = request;
    assertImageId(imageId);
    return await this.#turns.run(sandboxId, async () => {
      const written = this.images.get(imageId);
      if (written && !this.held.has(sandboxId)) return encodeImage(written);
      const sandbox = this.#running(sandboxId);
      const hasMemory = request.memory && this.keepsMemory;
      if (sandbox.isSilent && (request.requireHealthyGuest || !hasMemory)) throw rpcError("guest_unresponsive", "its agent is silent");
      if (hasMemory && sandbox.unsavable) throw rpcError("state_not_savable", sandbox.unsavable);
      if (written) throw rpcError("already_exists", "there is an image of this id");
      sandbox.state = "pausing";
      try {
        await this.#behave(this.pause, signal);
      } catch (error) {
        sandbox.state = "running";
        throw error;
      }
      const image = { sandboxId, hasMemory, agentUnresponsive: sandbox.isSilent === true, mounts: sandbox.spec.volumeMounts };
      this.images.set(imageId, image);
      this.held.delete(sandboxId);
      return encodeImage(image);
    });
  }

  async #resume(unchecked: SandboxSpec | undefined, { signal }: HandlerContext): Promise<FakeStart> {
    const spec = checkedSpec(unchecked);
    return await this.#turns.run(spec.sandboxId, async () => {
      const before = this.held.get(spec.sandboxId);
      if (before?.started && spec.imageId !== "" && before.spec.imageId === spec.imageId) return before.started;
      this.#assertNotHeld(spec.sandboxId);
      const image = this.#imageOf(spec);
      const sandbox: FakeSandbox = { spec, state: "creating" };
      this.held.set(spec.sandboxId, sandbox);
      try {
        await this.#behave(this.resume, signal);
      } catch (error) {
        this.held.delete(spec.sandboxId);
        throw error;
      }
      const started = this.#finish(sandbox, image);
      this.images.delete(spec.imageId);
      return started;
    });
  }

  async #snapshot(request: SnapshotSandboxRequest, { signal }: HandlerContext) {
    const { sandboxId, imageId, sourceImageId } = request;
    assertImageId(imageId);
    return await this.#turns.run(sandboxId, async () => {
      const written = this.images.get(imageId);
      if (written) return encodeImage(written);
      const source = sourceImageId === "" ? this.#imageOfRunning(sandboxId) : this.images.get(sourceImageId);
      if (!source || source.isSnapshot) throw rpcError("image_missing", "no sandbox is paused in such an image");
      await this.#behave(this.snapshot, signal);
      const image = { ...source, isSnapshot: true, hasMemory: source.hasMemory && request.memory };
      this.images.set(imageId, image);
      const running = this.held.get(sandboxId);
      if (!running) return encodeImage(image);
      running.memoryLostReason = this.memoryLostReason;
      return { ...encodeImage(image), memoryLostReason: this.memoryLostReason };
    });
  }

  #finish(sandbox: FakeSandbox, image: FakeImage | undefined): FakeStart {
    sandbox.state = "running";
    const wantsMemory = image?.hasMemory === true && !sandbox.spec.withoutMemory;
    const isChanged = mountsKey(this.#present(sandbox.spec.volumeMounts)) !== mountsKey(image?.mounts ?? []);
    const memoryLostReason = wantsMemory ? this.memoryLostReason || (isChanged ? "its volumes are others" : "") : "";
    const startKind = wantsMemory && memoryLostReason === "" ? StartKind.RESTORE : StartKind.BOOT;
    sandbox.started = { runtime: RUNTIMES[0], agentVersion: AGENT_VERSION, startKind, memoryLostReason };
    return sandbox.started;
  }

  #assertNotHeld(sandboxId: string): void {
    if (this.held.has(sandboxId)) throw rpcError("already_exists", "there is one of this id");
  }

  #running(sandboxId: string): FakeSandbox {
    const sandbox = this.held.get(sandboxId);
    if (sandbox?.state !== "running") throw rpcError("sandbox_gone", "it does not run here");
    return sandbox;
  }

  /** A snapshot does not ask the agent, so a silent agent does not fail it. */
  #imageOfRunning(sandboxId: string): FakeImage {
    const { spec } = this.#running(sandboxId);
    return { sandboxId, hasMemory: this.keepsMemory, agentUnresponsive: false, mounts: spec.volumeMounts };
  }

  #present(mounts: readonly VolumeMount[]): readonly VolumeMount[] {
    return mounts.filter(({ volumeId }) => this.volumes.held.has(volumeId));
  }

  /** The volumes of running and paused sandboxes. */
  *#mounts(): Iterable<readonly [string, readonly VolumeMount[]]> {
    for (const [id, { spec }] of this.held) yield [id, spec.volumeMounts];
    for (const { isSnapshot, sandboxId, mounts = [] } of this.images.values()) if (!isSnapshot) yield [sandboxId, mounts];
  }

  #imageOf(spec: SandboxSpec): FakeImage {
    const image = this.images.get(spec.imageId);
    if (!image) throw rpcError("image_missing", "there is no such image");
    return image;
  }

  async #behave(behaviour: FakeBehaviour, signal: AbortSignal, hurried?: Promise<void>): Promise<void> {
    if (behaviour === "ok") return;
    if (behaviour !== "hang") throw new ConnectError("the fake node was told to fail: /secret/path", behaviour);
    const aborted = Promise.withResolvers<never>();
    const abort = () => aborted.reject(new ConnectError("aborted", Code.Aborted));
    // The caller may give up while its call waits for its turn.
    if (signal.aborted) abort();
    signal.addEventListener("abort", abort, { once: true });
    this.#hanging += 1;
    try {
      await Promise.race([this.#released.promise, aborted.promise, ...(hurried ? [hurried] : [])]);
    } finally {
      this.#hanging -= 1;
    }
  }
}

function encodeImage({ hasMemory, agentUnresponsive }: FakeImage) {
  return { hasMemory, agentUnresponsive, sizeBytes: hasMemory ? 4096n : 0n };
}
