// The builds that this node runs or has run. They are in memory alone: after a restart of the node, the control plane starts them again, and
// their finished steps are cached.

import { asError, type Logger, PlatformError } from "@skerry/base";
import { BuildFailure, type BuildLog, holderOfBuild } from "@skerry/builder";
import type { LayerStore } from "@skerry/layers";
import type { BuildSpec } from "@skerry/wire/node";
import { type BuildEventInit, BuildEvents, type BuildOutcome } from "./build-events.ts";
import { StepTimes } from "./step-times.ts";

/** How long the node remembers a build that the control plane does not ask for. */
const REMEMBERED_MS = 3_600_000;
/** The id is a part of the name of a holder of layers. */
const BUILD_ID = /^[a-z0-9][a-z0-9-]{0,79}$/;
const CANCELLED = "build was cancelled";

export type BuildResultInit = Extract<BuildOutcome, { case: "succeeded" }>["value"];

export interface BuildWork {
  readonly spec: BuildSpec;
  readonly signal: AbortSignal;
  readonly log: BuildLog;
}

export interface Builder {
  /** Runs one build. Throws BuildFailure for what the caller may know. Nothing of it runs any more when this settles. */
  readonly run: (work: BuildWork) => Promise<BuildResultInit>;
  close(): void;
}

export interface BuildsOptions {
  readonly layers: Pick<LayerStore, "release" | "holders">;
  /** Most builds that run at the same time. */
  readonly most: number;
  /** Undefined on a node that builds nothing. */
  readonly builder: Builder | undefined;
  readonly logger: Logger;
}

interface Build {
  readonly events: BuildEvents;
  readonly cancel: AbortController;
  /** Settles when nothing of the build runs. Never rejects. */
  readonly ended: Promise<void>;
}

export class Builds {
  readonly #options: BuildsOptions;
  readonly #builds = new Map<string, Build>();
  #isClosed = false;

  /** Releases the holds of builds of a former process. A node that builds nothing may share its layers with one that does. */
  constructor(options: BuildsOptions) {
    this.#options = options;
    const { layers, builder } = options;
    if (!builder) return;
    for (const holder of layers.holders()) if (holder.startsWith(holderOfBuild(""))) layers.release(holder);
  }

  /** Builds that have not ended. */
  get runningCount(): number {
    return [...this.#builds.values()].filter(({ events }) => !events.isOver).length;
  }

  get isBusy(): boolean {
    return this.runningCount > 0;
  }

  /** Throws PlatformError("invalid_argument" | "capacity_unavailable"). Does nothing for a build that is here already. */
  start(spec: BuildSpec): void {
    const { buildId } = spec;
    if (!BUILD_ID.test(buildId)) throw new PlatformError("invalid_argument", `not the id of a build: ${buildId.slice(0, 100)}`);
    if (this.#builds.has(buildId)) return;
    const { builder, most } = this.#options;
    if (!builder) throw new PlatformError("invalid_argument", "this node builds no templates");
    const running = this.runningCount;
    if (running >= most || this.#isClosed) throw new PlatformError("capacity_unavailable", `${running} builds run on this node already`);
    const events = new BuildEvents();
    const cancel = new AbortController();
    this.#builds.set(buildId, { events, cancel, ended: this.#run(spec, { builder, events, signal: cancel.signal }) });
  }

  /** Throws PlatformError("build_missing") for a build that the node does not have, and when it stops before the build's end. */
  async *watch(buildId: string, from: number, signal: AbortSignal): AsyncGenerator<BuildEventInit> {
    const build = this.#builds.get(buildId);
    if (!build) throw missing(buildId);
    let hasOutcome = false;
    for await (const event of build.events.from(from, signal)) {
      hasOutcome = event.event.case !== "line";
      yield event;
    }
    if (!hasOutcome && this.#isClosed && !signal.aborted) throw missing(buildId);
  }

  /** Resolves when nothing of the build runs. */
  async cancel(buildId: string): Promise<void> {
    const build = this.#builds.get(buildId);
    build?.cancel.abort(new BuildFailure(CANCELLED, { step: "" }));
    await build?.ended;
  }

  /** Forgets a build, which is cancelled if it still runs, and releases its layers. */
  async forget(buildId: string): Promise<void> {
    if (!BUILD_ID.test(buildId)) return;
    await this.cancel(buildId);
    this.#builds.delete(buildId);
    this.#options.layers.release(holderOfBuild(buildId));
  }

  /** Ends all builds without an outcome: the control plane starts them again. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const { cancel, events } of this.#builds.values()) {
      events.close();
      cancel.abort(new Error("the node stops"));
    }
    await Promise.all([...this.#builds.values()].map(({ ended }) => ended));
    this.#options.builder?.close();
  }

  async #run(
    spec: BuildSpec,
    { builder, events, signal }: { readonly builder: Builder; readonly events: BuildEvents; readonly signal: AbortSignal },
  ): Promise<void> {
    const { buildId, templateId } = spec;
    const times = new StepTimes();
    const log: BuildLog = (line) => {
      times.at(line.step);
      events.line(line);
    };
    const facts = { build_id: buildId, template_id: templateId };
    // In another turn: the caller has registered the build then.
    await Promise.resolve();
    this.#options.logger.info(facts, "build started");
    try {
      signal.throwIfAborted();
      const value = await builder.run({ spec, signal, log });
      signal.throwIfAborted();
      events.end({ case: "succeeded", value });
      this.#options.logger.info({ ...facts, ...times.fields() }, "build finished");
    } catch (thrown) {
      const error = signal.aborted ? asError(signal.reason) : asError(thrown);
      events.end({ case: "failed", value: failureOf(error) });
      const isInternal = !signal.aborted && (!(error instanceof BuildFailure) || (error.step === "" && error.cause !== undefined));
      this.#options.logger[isInternal ? "error" : "info"]({ ...facts, err: error, ...times.fields() }, "build failed");
    }
    setTimeout(() => void this.forget(buildId).catch(() => {}), REMEMBERED_MS).unref();
  }
}

function missing(buildId: string): PlatformError {
  return new PlatformError("build_missing", `build ${buildId.slice(0, 100)} is not on this node`);
}

/** Callers do not see what an internal error says. */
function failureOf(error: Error): { message: string; step: string } {
  if (error instanceof BuildFailure) return { message: error.message, step: error.step };
  return { message: "An internal error occurred. Please try again or contact support with the build ID.", step: "" };
}
