// What logged processes of this sandbox wrote, line by line, for the sandbox's log. The node follows it on one connection. It keeps the last lines,
// so that nothing is lost while that connection is opened anew; what the guest writes faster than the node reads is left out, and the numbers
// of the lines tell how many were.

import { StringDecoder } from "node:string_decoder";
import { kernelRandomUuid } from "../kernel-random.ts";
import type { OutputStream } from "./running/subscriber.ts";

export interface OutputLine {
  /** Rises by 1 with each line. */
  readonly number: number;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly pid: number;
  readonly stream: OutputStream;
  readonly text: string;
}

const KEPT_LINES = 1_000;
const KEPT_CHARACTERS = 512 * 1024;
const MAX_LINE_CHARACTERS = 8_192;

export type OutputListener = (line: OutputLine) => void;

export class OutputLog {
  #source = kernelRandomUuid();
  #number = 0;
  #lines: OutputLine[] = [];
  #characters = 0;
  #listener: OutputListener | undefined;

  /** Changes when the numbers begin again. */
  get source(): string {
    return this.#source;
  }

  add(line: Omit<OutputLine, "number">): void {
    this.#number += 1;
    const numbered = { number: this.#number, ...line };
    this.#lines.push(numbered);
    this.#characters += line.text.length;
    while (this.#lines.length > KEPT_LINES || this.#characters > KEPT_CHARACTERS) this.#characters -= this.#lines.shift()?.text.length ?? 0;
    this.#listener?.(numbered);
  }

  /** Passes on the kept lines after this one of this source, and then every new one. Replaces a former listener. Returns what ends it. */
  follow({ source, after }: { readonly source: string; readonly after: number }, listener: OutputListener): () => void {
    const first = source === this.#source ? after : 0;
    for (const line of this.#lines) if (line.number > first) listener(line);
    this.#listener = listener;
    return () => {
      if (this.#listener === listener) this.#listener = undefined;
    };
  }

  /** This is another sandbox now: a fork, or one that was ready. The lines until now are not its own. */
  reset(): void {
    this.#source = kernelRandomUuid();
    this.#number = 0;
    this.#lines = [];
    this.#characters = 0;
  }
}

/** Makes lines of what one process writes. */
export class ProcessOutput {
  readonly #log: OutputLog;
  readonly #pid: number;
  readonly #open = new Map<OutputStream, { readonly decoder: StringDecoder; text: string }>();

  constructor(log: OutputLog, pid: number) {
    this.#log = log;
    this.#pid = pid;
  }

  write(stream: OutputStream, bytes: Uint8Array): void {
    const open = this.#open.get(stream) ?? { decoder: new StringDecoder("utf8"), text: "" };
    this.#open.set(stream, open);
    const lines = (open.text + open.decoder.write(Buffer.from(bytes))).split("\n");
    open.text = lines.pop() ?? "";
    for (const line of lines) this.#add(stream, line);
    // A line that does not end is logged in parts.
    for (; open.text.length > MAX_LINE_CHARACTERS; open.text = open.text.slice(MAX_LINE_CHARACTERS)) {
      this.#add(stream, open.text.slice(0, MAX_LINE_CHARACTERS));
    }
  }

  /** Logs the lines that have no end. */
  end(): void {
    for (const [stream, { decoder, text }] of this.#open) {
      const rest = text + decoder.end();
      if (rest !== "") this.#add(stream, rest);
    }
    this.#open.clear();
  }

  #add(stream: OutputStream, text: string): void {
    const line = text.replace(/\r$/, "").slice(0, MAX_LINE_CHARACTERS);
    this.#log.add({ at: Date.now(), pid: this.#pid, stream, text: line });
  }
}
