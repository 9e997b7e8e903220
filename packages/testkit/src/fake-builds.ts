import { Code, ConnectError, type HandlerContext, type ServiceImpl } from "@connectrpc/connect";
import { AGENT_VERSION, NODE_ERRORS, type NodeErrorCode } from "@skerry/wire";
import { type BuildEvent, type BuildSpec, ErrorDetailSchema, type NodeService } from "@skerry/wire/node";

type Event = Omit<BuildEvent, "$typeName" | "$unknown">;
type EventCase = { readonly [K in "line" | "succeeded" | "failed"]: Extract<BuildEvent["event"], { case: K }> }[
  | "line"
  | "succeeded"
  | "failed"];
type Loose<T> = T extends { case: infer C; value: infer V } ? { case: C; value: Omit<V, "$typeName" | "$unknown"> } : never;

export interface FakeBuild {
  readonly spec: BuildSpec;
  readonly events: Event[];
  isOver: boolean;
}

/** The builds of a fake node. They end at once, unless a test scripts them (`holds`). */
export class FakeBuilds {
  readonly held = new Map<string, FakeBuild>();
  /** Every spec that was accepted, in order. */
  readonly started: BuildSpec[] = [];
  readonly forgotten: string[] = [];
  readonly cancelled: string[] = [];
  /** Number of calls that asked to start a build. */
  asked = 0;
  /** Builds go on only when a test says so. */
  holds = false;
  /** How many builds run at a time. More get RESOURCE_EXHAUSTED. */
  room = Number.POSITIVE_INFINITY;
  /** What starts fail with. */
  refusal: ConnectError | undefined;
  /** Starts that are carried out, and whose answer is lost. */
  losesStarts = 0;
  /** Starts, or requests to forget a build, that hang until `release()`: before they do anything, or after. */
  hangs: "start" | "started" | "forget" | undefined;
  /** How many calls hang. */
  hanging = 0;
  /** By build: how many watch it now. */
  readonly watchers = new Map<string, number>();
  /** The most that watched a build at the same time. */
  mostWatchers = 0;
  /** What watching fails with. */
  silence: ConnectError | undefined;
  #released = Promise.withResolvers<void>();
  #changed = unwatchedPromise();

  get running(): number {
    return [...this.held.values()].filter(({ isOver }) => !isOver).length;
  }

  say(buildId: string, message: string, about: { level?: string; step?: string; atMs?: number } = {}): void {
    const { level = "info", step = "1", atMs = Date.now() } = about;
    this.#add(buildId, { case: "line", value: { atMs: BigInt(atMs), level, step, message } });
  }

  succeed(
    buildId: string,
    result: {
      layers?: string[];
      user?: string;
      workdir?: string;
      env?: Record<string, string>;
      start?: { command: string; ready: string };
    } = {},
  ): void {
    const { layers = [`sha256:${"b".repeat(64)}`], user = "user", workdir = "", env = {}, start } = result;
    const context = { user, workdir, env };
    this.#end(buildId, {
      case: "succeeded",
      value: { layers, context: context as never, agentVersion: AGENT_VERSION, ...(start && { start: { ...context, ...start } as never }) },
    });
  }

  fail(buildId: string, message: string, step = ""): void {
    this.#end(buildId, { case: "failed", value: { message, step } });
  }

  /** Ends all streams, as a connection that breaks does. */
  disconnect(): void {
    this.#changed.reject(new ConnectError("the connection broke", Code.Unavailable));
    this.#changed = unwatchedPromise();
  }

  /** Lets all hanging calls continue. */
  release(): void {
    this.hangs = undefined;
    this.#released.resolve();
    this.#released = Promise.withResolvers<void>();
  }

  /** A restart of the node: it knows no build any more. */
  restart(): void {
    this.held.clear();
    this.disconnect();
  }

  get calls(): Pick<ServiceImpl<typeof NodeService>, "startBuild" | "watchBuild" | "cancelBuild" | "forgetBuild"> {
    return {
      startBuild: async ({ spec }, { signal }) => {
        await this.#hang("start", signal);
        const started = this.#start(spec);
        await this.#hang("started", signal);
        return started;
      },
      watchBuild: ({ buildId, from }, context) => this.#watch(buildId, Number(from), context),
      cancelBuild: ({ buildId }) => {
        const build = this.held.get(buildId);
        if (build && !build.isOver) this.fail(buildId, "build was cancelled");
        this.cancelled.push(buildId);
        return {};
      },
      forgetBuild: async ({ buildId }, { signal }) => {
        await this.#hang("forget", signal);
        this.held.delete(buildId);
        this.forgotten.push(buildId);
        return {};
      },
    };
  }

  #start(spec: BuildSpec | undefined) {
    if (!spec || !/^[a-z0-9][a-z0-9-]{0,79}$/.test(spec.buildId)) throw refusalOf("invalid_argument");
    this.asked += 1;
    if (this.refusal) throw this.refusal;
    if (this.held.has(spec.buildId)) return {};
    if (this.running >= this.room) throw new ConnectError("the node runs as many builds as it may", Code.ResourceExhausted);
    this.held.set(spec.buildId, { spec, events: [], isOver: false });
    this.started.push(spec);
    if (!this.holds) {
      this.say(spec.buildId, `Building template ${spec.templateId}/${spec.buildId}`, { step: "" });
      this.succeed(spec.buildId);
    }
    if (this.losesStarts > 0) {
      this.losesStarts -= 1;
      throw new ConnectError("the answer was lost", Code.Unavailable);
    }
    return {};
  }

  async *#watch(buildId: string, from: number, { signal }: HandlerContext): AsyncGenerator<Event> {
    if (this.silence) throw this.silence;
    this.#count(buildId, 1);
    try {
      yield* this.#events(buildId, from, signal);
    } finally {
      this.#count(buildId, -1);
    }
  }

  #count(buildId: string, change: number): void {
    const watchers = (this.watchers.get(buildId) ?? 0) + change;
    this.watchers.set(buildId, watchers);
    this.mostWatchers = Math.max(this.mostWatchers, watchers);
  }

  async #hang(at: FakeBuilds["hangs"], signal: AbortSignal): Promise<void> {
    if (this.hangs !== at) return;
    const aborted = Promise.withResolvers<never>();
    const abort = () => aborted.reject(new ConnectError("aborted", Code.Aborted));
    signal.addEventListener("abort", abort, { once: true });
    this.hanging += 1;
    try {
      await Promise.race([this.#released.promise, aborted.promise]);
    } finally {
      this.hanging -= 1;
    }
  }

  async *#events(buildId: string, from: number, signal: AbortSignal): AsyncGenerator<Event> {
    const aborted = Promise.withResolvers<void>();
    signal.addEventListener("abort", () => aborted.resolve(), { once: true });
    for (let next = from; !signal.aborted; ) {
      const build = this.held.get(buildId);
      if (!build) throw new ConnectError("there is no such build", Code.NotFound);
      const changed = this.#changed.promise;
      for (const event of build.events.slice(next)) {
        yield event;
        next += 1;
      }
      if (build.isOver) return;
      if (next >= build.events.length) await Promise.race([changed, aborted.promise]);
    }
  }

  #end(buildId: string, event: Loose<EventCase>): void {
    this.#add(buildId, event);
    const build = this.held.get(buildId);
    if (build) build.isOver = true;
  }

  #add(buildId: string, event: Loose<EventCase>): void {
    const build = this.held.get(buildId);
    if (!build || build.isOver) throw new Error(`no such build runs: ${buildId}`);
    build.events.push({ number: BigInt(build.events.length), event: event as BuildEvent["event"] });
    this.#changed.resolve();
    this.#changed = unwatchedPromise();
  }
}

/** A failure with the node's own code. */
export function refusalOf(code: NodeErrorCode): ConnectError {
  return new ConnectError("the fake node was told to refuse: /secret/path", NODE_ERRORS[code], undefined, [
    { desc: ErrorDetailSchema, value: { code } },
  ]);
}

/** Its rejection is no unhandled one while no call waits for it. */
function unwatchedPromise(): PromiseWithResolvers<void> {
  const made = Promise.withResolvers<void>();
  made.promise.catch(() => {});
  return made;
}
