import { Code, ConnectError, createClient, createRouterTransport, type ServiceImpl } from "@connectrpc/connect";
import { NodeService, type SandboxSpec } from "@skerry/wire/node";

/** What a fake node does instead of working: `ok`, an error of that code, or nothing until `release()`. */
export type FakeBehaviour = "ok" | "hang" | Code;

export interface FakeSandbox {
  readonly spec: SandboxSpec;
  state: "creating" | "running" | "killing";
}

/**
 * A node that keeps sandboxes in memory and obeys the port's rules: creating an id twice is refused, killing an unknown one
 * is success, and everything that it holds is listed. For tests of what talks to nodes; it runs nothing.
 */
export class FakeNode {
  readonly nodeId: string;
  readonly url: string;
  readonly held = new Map<string, FakeSandbox>();
  readonly calls: { readonly method: string; readonly sandboxId: string }[] = [];
  create: FakeBehaviour = "ok";
  kill: FakeBehaviour = "ok";
  list: FakeBehaviour = "ok";
  /** A create that fails leaves what it made so far. */
  leavesHalfMade = false;
  killDelayMs = 0;
  #released = Promise.withResolvers<void>();

  constructor(nodeId: string) {
    this.nodeId = nodeId;
    this.url = `http://${nodeId}.test`;
  }

  get client() {
    const service = this.#service();
    return createClient(
      NodeService,
      createRouterTransport(({ service: add }) => {
        add(NodeService, service);
      }),
    );
  }

  /** Lets everything that hangs go on. */
  release(): void {
    this.#released.resolve();
    this.#released = Promise.withResolvers<void>();
  }

  countCalls(method: string, sandboxId?: string): number {
    return this.calls.filter((call) => call.method === method && (sandboxId === undefined || call.sandboxId === sandboxId)).length;
  }

  #service(): ServiceImpl<typeof NodeService> {
    return {
      getInfo: () => ({ nodeId: this.nodeId, agentVersion: "0.6.4", runtimes: ["gvisor"], cpuCount: 2, sandboxCount: this.held.size }),
      createSandbox: async ({ spec }, context) => {
        if (!spec) throw new ConnectError("no spec", Code.InvalidArgument);
        this.calls.push({ method: "create", sandboxId: spec.sandboxId });
        if (this.held.has(spec.sandboxId)) throw new ConnectError("there is one of this id", Code.AlreadyExists);
        const sandbox: FakeSandbox = { spec, state: "creating" };
        this.held.set(spec.sandboxId, sandbox);
        try {
          await this.#behave(this.create, context.signal);
        } catch (error) {
          if (!this.leavesHalfMade) this.held.delete(spec.sandboxId);
          throw error;
        }
        if (!this.held.has(spec.sandboxId)) throw new ConnectError("killed while it was being made", Code.Aborted);
        sandbox.state = "running";
        return { runtime: "gvisor", agentVersion: "0.6.4" };
      },
      killSandbox: async ({ sandboxId }, context) => {
        this.calls.push({ method: "kill", sandboxId });
        await this.#behave(this.kill, context.signal);
        if (this.killDelayMs > 0) await new Promise((resolve) => setTimeout(resolve, this.killDelayMs));
        return { existed: this.held.delete(sandboxId) };
      },
      pauseSandbox: () => Promise.reject(new ConnectError("the fake node can't", Code.Unimplemented)),
      resumeSandbox: () => Promise.reject(new ConnectError("the fake node can't", Code.Unimplemented)),
      snapshotSandbox: () => Promise.reject(new ConnectError("the fake node can't", Code.Unimplemented)),
      deleteImage: () => Promise.reject(new ConnectError("the fake node can't", Code.Unimplemented)),
      listImages: () => ({ imageIds: [] }),
      listSandboxes: async (_request, context) => {
        this.calls.push({ method: "list", sandboxId: "" });
        await this.#behave(this.list, context.signal);
        return { sandboxes: [...this.held].map(([sandboxId, { state }]) => ({ sandboxId, state })) };
      },
    };
  }

  async #behave(behaviour: FakeBehaviour, signal: AbortSignal): Promise<void> {
    if (behaviour === "ok") return;
    if (behaviour !== "hang") throw new ConnectError("the fake node was told to fail: /secret/path", behaviour);
    const aborted = new Promise<never>((_resolve, reject) => {
      signal.addEventListener("abort", () => reject(new ConnectError("aborted", Code.Aborted)), { once: true });
    });
    await Promise.race([this.#released.promise, aborted]);
  }
}
