// One process that was started through the API, from its start to the `end` event.
//
// It ends when the program has exited and its output has reached EOF. So a background child that holds the pipe keeps the process
// listed, and its late output is delivered. After SendSignal with KILL or TERM the exit alone counts. Otherwise the orphans of a
// killed shell would keep clients waiting.

import { Socket } from "node:net";
import { ReadStream } from "node:tty";
import type { ExitStatus } from "@skerry/base/posix-spawn";
import { type PtySize, resizePty } from "../../native/pty.ts";
import type { ProcessOutput } from "../output-log.ts";
import { type EndFields, endFields } from "./exit-status.ts";
import { Followers } from "./followers.ts";
import type { Launched } from "./launch.ts";
import type { OutputStream, Subscriber } from "./subscriber.ts";

// Limits on the output in one event, as the specification has them.
const PIPE_EVENT_BYTES = 32 * 1024;
const PTY_EVENT_BYTES = 16 * 1024;
/** After a signal: how long the agent still reads output that is already in the pipes. */
const LAST_READ_MS = 10;

export interface ProcessIdentity {
  readonly cmd: string;
  readonly args: readonly string[];
  readonly envs: Readonly<Record<string, string>>;
  readonly cwd: string | undefined;
  readonly tag: string | undefined;
}

export interface GuestProcessOptions {
  readonly identity: ProcessIdentity;
  /** Takes the output as well. */
  readonly log: ProcessOutput | undefined;
  readonly onEnd: (process: GuestProcess) => void;
}

export class GuestProcess {
  readonly pid: number;
  readonly identity: ProcessIdentity;
  /** Where input goes: stdin, or the terminal. */
  readonly input: ProcessInputTarget;
  readonly #followers = new Followers(() => this.#adjustFlow());
  readonly #outputs = new Set<Socket>();
  readonly #log: ProcessOutput | undefined;
  readonly #onEnd: (process: GuestProcess) => void;
  readonly #ended = Promise.withResolvers<void>();
  #exit: ExitStatus | undefined;
  #signalled = false;
  #end: EndFields | undefined;

  constructor(launched: Launched, { identity, log, onEnd }: GuestProcessOptions) {
    this.pid = launched.pid;
    this.identity = identity;
    this.#log = log;
    this.#onEnd = onEnd;
    if (launched.kind === "pty") {
      const terminal = new ReadStream(launched.master);
      this.#read(terminal, "pty", PTY_EVENT_BYTES);
      this.input = { kind: "pty", stream: terminal, master: launched.master };
    } else {
      this.#read(new Socket({ fd: launched.stdout, readable: true, writable: false }), "stdout", PIPE_EVENT_BYTES);
      this.#read(new Socket({ fd: launched.stderr, readable: true, writable: false }), "stderr", PIPE_EVENT_BYTES);
      this.input = { kind: "pipe", stream: launched.stdin === undefined ? undefined : openStdin(launched.stdin) };
    }
  }

  /** Set when the process has ended. Its program may have exited earlier. */
  get end(): EndFields | undefined {
    return this.#end;
  }

  /** Resolves when the process has ended. */
  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  subscribe(): Subscriber {
    const subscriber = this.#followers.add();
    if (this.#end !== undefined) {
      subscriber.push({ case: "end", value: this.#end }, 0);
      subscriber.close();
    }
    return subscriber;
  }

  unsubscribe(subscriber: Subscriber): void {
    this.#followers.remove(subscriber);
  }

  resize(size: PtySize): void {
    if (this.input.kind === "pty") resizePty(this.input.master, size);
  }

  /** Signals the process alone, not its group. After its exit this only ends the wait for EOF. */
  signal(signal: "SIGKILL" | "SIGTERM"): void {
    this.#signalled = true;
    if (this.#exit === undefined) process.kill(this.pid, signal);
    else this.#finishSoon();
  }

  exited(status: ExitStatus): void {
    this.#exit = status;
    if (this.#outputs.size === 0) this.#finish();
    else if (this.#signalled) this.#finishSoon();
  }

  #read(stream: Socket, name: OutputStream, limit: number): void {
    this.#outputs.add(stream);
    stream.on("data", (chunk: Buffer<ArrayBuffer>) => {
      for (let from = 0; from < chunk.length; from += limit) this.#output(name, chunk.subarray(from, from + limit));
      this.#adjustFlow();
    });
    // A terminal reports EIO when its last process has ended. On a pipe nothing can be read after an error.
    stream.on("error", () => stream.destroy());
    stream.on("close", () => {
      this.#outputs.delete(stream);
      if (this.#exit !== undefined && this.#outputs.size === 0) this.#finish();
    });
  }

  #output(name: OutputStream, bytes: Uint8Array<ArrayBuffer>): void {
    this.#log?.write(name, bytes);
    this.#followers.push({ case: "data", value: { output: { case: name, value: bytes } } }, bytes.length);
  }

  // Without followers the output is read and dropped, so that the process never blocks.
  #adjustFlow(): void {
    const blocked = this.#followers.areFull;
    for (const stream of this.#outputs) {
      if (blocked) stream.pause();
      else if (stream.isPaused()) stream.resume();
    }
  }

  #finishSoon(): void {
    setTimeout(() => this.#finish(), LAST_READ_MS);
  }

  #finish(): void {
    if (this.#end !== undefined || this.#exit === undefined) return;
    this.#end = endFields(this.#exit);
    for (const stream of this.#outputs) stream.destroy();
    this.input.stream?.destroy();
    this.#log?.end();
    this.#onEnd(this);
    this.#followers.push({ case: "end", value: this.#end }, 0);
    this.#followers.close();
    this.#ended.resolve();
  }
}

export type ProcessInputTarget =
  | { readonly kind: "pipe"; readonly stream: Socket | undefined }
  | { readonly kind: "pty"; readonly stream: Socket; readonly master: number };

function openStdin(fd: number): Socket {
  const stream = new Socket({ fd, readable: false, writable: true });
  // Each write reports its own failure. Without this listener, an error after the reader has closed the pipe would crash the agent.
  stream.on("error", () => {});
  return stream;
}
