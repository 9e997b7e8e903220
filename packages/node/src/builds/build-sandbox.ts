// One sandbox of a build: it runs a step, and what it wrote becomes a layer, or is discarded.

import type { Logger } from "@skerry/base";
import { type BuildCommand, type BuildCopy, type BuildSandbox, type CommandEnd, sandboxLost } from "@skerry/builder";
import type { LayerDigest } from "@skerry/layers";
import type { Containers, LiveContainer } from "../containers/containers.ts";
import type { HostDeps } from "../containers/host.privileged.ts";
import { isSameProcess } from "../containers/process-identity.ts";
import { commitArea } from "./commit-area.privileged.ts";
import { copyInto } from "./copy-into.ts";
import { type CommandTarget, runCommandIn } from "./run-command.ts";

/** Time for the guest to write what it still holds in memory, such as times of files. */
const SYNC_TIMEOUT_MS = 600_000;

export interface NodeBuildSandboxOptions {
  readonly deps: HostDeps;
  readonly containers: Containers;
  /** A container of a build. */
  readonly live: LiveContainer;
  readonly logger: Logger;
}

export class NodeBuildSandbox implements BuildSandbox {
  readonly #options: NodeBuildSandboxOptions;
  #isOver = false;

  constructor(options: NodeBuildSandboxOptions) {
    this.#options = options;
  }

  async run(command: BuildCommand): Promise<CommandEnd> {
    return await this.#during(command.signal, (target) => runCommandIn(target, command));
  }

  async copy(copy: BuildCopy): ReturnType<BuildSandbox["copy"]> {
    return await this.#during(copy.signal, (target) => copyInto(target, copy));
  }

  async commit(holder: string): Promise<LayerDigest | undefined> {
    const { deps, containers, live } = this.#options;
    this.#assertThere();
    await this.#sync();
    this.#assertThere();
    this.#isOver = true;
    return await commitArea({ deps, containers, live, holder });
  }

  async discard(): Promise<void> {
    if (this.#isOver) return;
    this.#isOver = true;
    await this.#options.containers.tryToGiveBack(this.#options.live.record);
  }

  /** An image may lack the program: the files are on the host's side already then, but some of their times may not be. */
  async #sync(): Promise<void> {
    const { exitCode, status } = await this.run({
      argv: ["sync"],
      user: "root",
      workdir: "/",
      env: {},
      timeoutMs: SYNC_TIMEOUT_MS,
      signal: this.#lost,
    });
    if (exitCode !== 0) this.#options.logger.warn({ status }, "the files of a step of a build were not synced by its sandbox");
  }

  /** When the sandbox has ended, the error says why. */
  async #during<T>(signal: AbortSignal, work: (target: CommandTarget) => Promise<T>): Promise<T> {
    const { record } = this.#options.live;
    this.#assertThere();
    try {
      return await work({ address: record.slot.addresses.guest, token: record.identity.accessToken, lost: this.#lost });
    } catch (error) {
      if (signal.aborted || !this.#isGone()) throw error;
      throw this.#lostError(error);
    }
  }

  /** The connection may break before the end watch finds that the sandbox has ended. */
  #isGone(): boolean {
    return this.#lost.aborted || !isSameProcess(this.#options.live.record.process);
  }

  get #lost(): AbortSignal {
    return this.#options.live.ended.signal;
  }

  #assertThere(): void {
    if (this.#isOver) throw new Error("the sandbox of this step was committed or discarded");
    if (this.#isGone()) throw this.#lostError();
  }

  #lostError(cause?: unknown): Error {
    const { containers, live } = this.#options;
    const memory = containers.unaskedEndOf(live) === "memory";
    const why = live.build?.endReason ?? (memory ? `it ran out of memory (${live.record.size.memoryMb} MiB)` : "it ended by itself");
    return sandboxLost(`the sandbox of this step was lost: ${why}`, cause);
  }
}
