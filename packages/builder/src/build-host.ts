// The port through which a build reaches the machine. Every command of a build runs in a sandbox that the node starts, with the isolation,
// limits and network walls of any other sandbox.

import type { LayerDigest } from "@skerry/layers";
import type { StartCommand } from "@skerry/wire/node";

export interface BuildSize {
  readonly cpuCount: number;
  readonly memoryMb: number;
  readonly diskSizeMb: number;
}

export interface BuildHost {
  /** Starts a sandbox on layers, lowest first. After a failure nothing is left of it. */
  startSandbox(options: {
    readonly buildId: string;
    readonly templateId: string;
    readonly layers: readonly LayerDigest[];
    readonly size: BuildSize;
    /** "" is the node's default. */
    readonly runtime: string;
    readonly signal: AbortSignal;
  }): Promise<BuildSandbox>;

  /**
   * Starts a sandbox of the finished template, runs its start command, and waits until the template is ready. On a runtime that keeps memory,
   * the image is taken that the template's sandboxes start from. Throws BuildFailure for step "finalize" when the command fails, or the
   * template is not ready in time. An image that exists already is used, unless `force`. The builder logs when the command starts and when
   * the template is ready; the host logs output (`[start] [stdout]: …` as "info", `[ready] …` as "debug"). Commands run like those of steps:
   * see `loginShell`.
   */
  prepareTemplate(options: {
    readonly buildId: string;
    readonly templateId: string;
    readonly layers: readonly LayerDigest[];
    readonly size: BuildSize;
    readonly runtime: string;
    readonly start: StartCommand;
    readonly force: boolean;
    readonly signal: AbortSignal;
    readonly log: BuildLog;
  }): Promise<void>;

  /** The disk of an image as layers, which the holder holds. Throws PlatformError("image_missing"). */
  layersOfImage(imageId: string, options: { readonly holder: string; readonly signal: AbortSignal }): Promise<readonly LayerDigest[]>;
}

export interface BuildCommand {
  /** Without a shell: the caller writes `["/bin/bash", "-l", "-c", …]`. */
  readonly argv: readonly string[];
  readonly user: string;
  /** "": the home directory of the user. */
  readonly workdir: string;
  readonly env: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  /** Called for each line, without its end. A slow consumer slows the command down. */
  readonly onLine?: (line: string, stream: "stdout" | "stderr") => void;
}

/** How a command ended. `status` is the agent's text, such as "exit status 2" or "signal: killed". */
export interface CommandEnd {
  readonly exitCode: number;
  readonly status: string;
}

/** What is placed where. See spec/agent for the rules of places. */
export interface BuildCopy {
  /** A tar archive, plain or compressed with gzip. */
  readonly archive: AsyncIterable<Uint8Array>;
  readonly source: string;
  readonly destination: string;
  /** Directory of relative destinations. "": the home directory of `user`. */
  readonly workdir: string;
  /** Owner of the context; `owner` "" is this user and its group. */
  readonly user: string;
  /** "user" or "user:group", or "". */
  readonly owner: string;
  /** Octal, or "". */
  readonly mode: string;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

export interface BuildSandbox {
  /**
   * Throws PlatformError("build_command_refused") with the agent's own message when the command cannot start: the user or the directory does
   * not exist. Throws PlatformError("build_sandbox_lost") when the sandbox ends.
   */
  run(command: BuildCommand): Promise<CommandEnd>;
  /**
   * Throws PlatformError("build_copy_failed") whose message is for the caller. Returns the number of files, directories and links, and
   * warnings for the log, such as that the owner does not exist.
   */
  copy(copy: BuildCopy): Promise<{ readonly entries: number; readonly warnings: readonly string[] }>;
  /** Ends the sandbox, and returns what it wrote as a layer that the holder holds; undefined when it wrote nothing. */
  commit(holder: string): Promise<LayerDigest | undefined>;
  /** Ends the sandbox and discards what it wrote. Does nothing after a commit. Never throws. */
  discard(): Promise<void>;
}

export type LogLevel = "debug" | "info" | "warn" | "error";

/** Receives the lines of a build. */
export type BuildLog = (line: { readonly level: LogLevel; readonly step: string; readonly message: string }) => void;
