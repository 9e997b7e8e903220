import { Code, ConnectError, createClient, createRouterTransport, type HandlerContext, type ServiceImpl } from "@connectrpc/connect";
import { NodeService, type SandboxSpec, StartKind } from "@skerry/wire/node";

/** What a fake node does instead of working: `ok`, an error of that code, or nothing until `release()`. */
export type FakeBehaviour = "ok" | "hang" | Code;

export interface FakeSandbox {
  readonly spec: SandboxSpec;
  state: "creating" | "running" | "pausing" | "killing";
  /** Its agent answers nothing. */
  isSilent?: boolean;
}

export interface FakeImage {
  readonly sandboxId: string;
  readonly hasMemory: boolean;
  readonly agentUnresponsive: boolean;
}

export type FakeMethod = "create" | "kill" | "list" | "pause" | "resume" | "snapshot" | "deleteImage";

/**
 * A node that keeps sandboxes and images in memory and obeys the port's rules: creating an id twice is refused, killing an
 * unknown one is success, an image is there before its sandbox is gone and the other way round, and everything that it holds
 * is listed. For tests of what talks to nodes; it runs nothing.
 */
export class FakeNode {
  readonly nodeId: string;
  readonly url: string;
  readonly held = new Map<string, FakeSandbox>();
  readonly unaskedEnds = new Map<string, "exited" | "memory">();
  readonly images = new Map<string, FakeImage>();
  readonly calls: { readonly method: FakeMethod; readonly sandboxId: string }[] = [];
  create: FakeBehaviour = "ok";
  kill: FakeBehaviour = "ok";
  list: FakeBehaviour = "ok";
  pause: FakeBehaviour = "ok";
  resume: FakeBehaviour = "ok";
  snapshot: FakeBehaviour = "ok";
  deleteImage: FakeBehaviour = "ok";
  /** Methods that do their work, and whose answer then gets lost: it fails, or hangs until `release()`. */
  readonly lost = new Map<FakeMethod, Exclude<FakeBehaviour, "ok">>();
  /** A create that fails leaves what it made so far. */
  leavesHalfMade = false;
  killDelayMs = 0;
  /** As runc, when false. */
  keepsMemory = true;
  /** Why memory is not brought back by the next starts. */
  memoryLostReason = "";
  #released = Promise.withResolvers<void>();
  #hanging = 0;

  constructor(nodeId: string) {
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

  /** How many calls hang now: those whose caller goes do not any more. */
  get hanging(): number {
    return this.#hanging;
  }

  /** Lets everything that hangs go on. */
  release(): void {
    this.#released.resolve();
    this.#released = Promise.withResolvers<void>();
  }

  countCalls(method: FakeMethod, sandboxId?: string): number {
    return this.calls.filter((call) => call.method === method && (sandboxId === undefined || call.sandboxId === sandboxId)).length;
  }

  /** To be served over whatever transport a test needs. */
  get service(): ServiceImpl<typeof NodeService> {
    return {
      getInfo: () => ({
        nodeId: this.nodeId,
        agentVersion: "0.6.4",
        runtimes: ["gvisor"],
        cpuCount: 2,
        sandboxCount: this.held.size,
        keepsMemory: this.keepsMemory,
      }),
      createSandbox: ({ spec }, context) => this.#answer("create", spec?.sandboxId, () => this.#create(spec, context)),
      killSandbox: ({ sandboxId }, context) => this.#answer("kill", sandboxId, () => this.#kill(sandboxId, context)),
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
        return { imageIds: [...this.images.keys()] };
      },
      listSandboxes: async (_request, context) => {
        this.calls.push({ method: "list", sandboxId: "" });
        await this.#behave(this.list, context.signal);
        return {
          sandboxes: [...this.held].map(([sandboxId, { state }]) => ({ sandboxId, state })),
          unaskedEnds: [...this.unaskedEnds].map(([sandboxId, reason]) => ({ sandboxId, reason })),
        };
      },
    };
  }

  async #answer<T>(method: FakeMethod, sandboxId: string | undefined, work: () => Promise<T>): Promise<T> {
    this.calls.push({ method, sandboxId: sandboxId ?? "" });
    const answer = await work();
    // Nobody hears of it: that the caller is gone does not undo what is done.
    await this.#behave(this.lost.get(method) ?? "ok", new AbortController().signal);
    return answer;
  }

  async #create(spec: SandboxSpec | undefined, { signal }: HandlerContext) {
    const sandbox = this.#begin(spec);
    const image = sandbox.spec.imageId === "" ? undefined : this.#imageOf(sandbox.spec);
    this.held.set(sandbox.spec.sandboxId, sandbox);
    try {
      await this.#behave(this.create, signal);
    } catch (error) {
      if (!this.leavesHalfMade) this.held.delete(sandbox.spec.sandboxId);
      throw error;
    }
    return this.#finish(sandbox, image);
  }

  async #kill(sandboxId: string, { signal }: HandlerContext) {
    await this.#behave(this.kill, signal);
    if (this.killDelayMs > 0) await new Promise((resolve) => setTimeout(resolve, this.killDelayMs));
    return { existed: this.held.delete(sandboxId) };
  }

  async #pause(
    about: { sandboxId: string; imageId: string; memory: boolean; requireHealthyGuest: boolean },
    { signal }: Pick<HandlerContext, "signal">,
  ) {
    const sandbox = this.#running(about.sandboxId);
    if (sandbox.isSilent && (about.requireHealthyGuest || !about.memory)) throw new ConnectError("its agent is silent", Code.Unavailable);
    this.#assertFree(about.imageId);
    sandbox.state = "pausing";
    try {
      await this.#behave(this.pause, signal);
    } catch (error) {
      sandbox.state = "running";
      throw error;
    }
    const image = this.#take(about.imageId, sandbox, about.memory);
    this.held.delete(about.sandboxId);
    return { hasMemory: image.hasMemory, agentUnresponsive: image.agentUnresponsive, sizeBytes: 4096n };
  }

  async #resume(spec: SandboxSpec | undefined, { signal }: HandlerContext) {
    const sandbox = this.#begin(spec);
    const image = this.#imageOf(sandbox.spec);
    this.held.set(sandbox.spec.sandboxId, sandbox);
    try {
      await this.#behave(this.resume, signal);
    } catch (error) {
      this.held.delete(sandbox.spec.sandboxId);
      throw error;
    }
    const answer = this.#finish(sandbox, image);
    this.images.delete(sandbox.spec.imageId);
    return answer;
  }

  async #snapshot(
    about: { sandboxId: string; imageId: string; memory: boolean; sourceImageId: string },
    { signal }: Pick<HandlerContext, "signal">,
  ) {
    this.#assertFree(about.imageId);
    if (about.sourceImageId !== "") {
      const source = this.images.get(about.sourceImageId);
      if (!source) throw new ConnectError("there is no such image", Code.NotFound);
      await this.#behave(this.snapshot, signal);
      const hasMemory = source.hasMemory && about.memory;
      this.images.set(about.imageId, { ...source, hasMemory });
      return { hasMemory, sizeBytes: 4096n };
    }
    const sandbox = this.#running(about.sandboxId);
    if (sandbox.isSilent) throw new ConnectError("its agent is silent", Code.Unavailable);
    await this.#behave(this.snapshot, signal);
    return { hasMemory: this.#take(about.imageId, sandbox, about.memory).hasMemory, sizeBytes: 4096n };
  }

  #begin(spec: SandboxSpec | undefined): FakeSandbox {
    if (!spec) throw new ConnectError("no spec", Code.InvalidArgument);
    if (this.held.has(spec.sandboxId)) throw new ConnectError("there is one of this id", Code.AlreadyExists);
    return { spec, state: "creating" };
  }

  #finish(sandbox: FakeSandbox, image: FakeImage | undefined) {
    if (!this.held.has(sandbox.spec.sandboxId)) throw new ConnectError("killed while it was being made", Code.Aborted);
    sandbox.state = "running";
    const wantsMemory = image?.hasMemory === true && !sandbox.spec.withoutMemory;
    const memoryLostReason = wantsMemory ? this.memoryLostReason : "";
    const startKind = wantsMemory && memoryLostReason === "" ? StartKind.RESTORE : StartKind.BOOT;
    return { runtime: "gvisor", agentVersion: "0.6.4", startKind, memoryLostReason };
  }

  #running(sandboxId: string): FakeSandbox {
    const sandbox = this.held.get(sandboxId);
    if (sandbox?.state !== "running") throw new ConnectError("it does not run here", sandbox ? Code.FailedPrecondition : Code.NotFound);
    return sandbox;
  }

  #imageOf(spec: SandboxSpec): FakeImage {
    const image = this.images.get(spec.imageId);
    if (!image) throw new ConnectError("there is no such image", Code.NotFound);
    return image;
  }

  #assertFree(imageId: string): void {
    if (!/^[a-z0-9]{20}$/.test(imageId)) throw new ConnectError("no image has such an id", Code.InvalidArgument);
    if (this.images.has(imageId)) throw new ConnectError("there is an image of this id", Code.AlreadyExists);
  }

  #take(imageId: string, sandbox: FakeSandbox, memory: boolean): FakeImage {
    const image = {
      sandboxId: sandbox.spec.sandboxId,
      hasMemory: memory && this.keepsMemory,
      agentUnresponsive: sandbox.isSilent === true,
    };
    this.images.set(imageId, image);
    return image;
  }

  async #behave(behaviour: FakeBehaviour, signal: AbortSignal): Promise<void> {
    if (behaviour === "ok") return;
    if (behaviour !== "hang") throw new ConnectError("the fake node was told to fail: /secret/path", behaviour);
    const aborted = new Promise<never>((_resolve, reject) => {
      signal.addEventListener("abort", () => reject(new ConnectError("aborted", Code.Aborted)), { once: true });
    });
    this.#hanging += 1;
    try {
      await Promise.race([this.#released.promise, aborted]);
    } finally {
      this.#hanging -= 1;
    }
  }
}
