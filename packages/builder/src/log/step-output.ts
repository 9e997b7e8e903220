// The output of a command in the log of a build: trimmed, without empty lines, and bounded. A command that writes without end costs the same
// memory and disk as one that writes a lot: the beginning and the end are kept, because the end says why it failed.

import { cut } from "./cut.ts";

export interface OutputLimits {
  /** Logged as they come. */
  readonly firstLines: number;
  readonly firstLength: number;
  /** Of the rest, logged at the end. */
  readonly lastLines: number;
  readonly lineLength: number;
}

export const OUTPUT_LIMITS: OutputLimits = { firstLines: 5_000, firstLength: 1_000_000, lastLines: 100, lineLength: 4_000 };

type Stream = "stdout" | "stderr";

export class StepOutput {
  readonly #write: (message: string) => void;
  readonly #limits: OutputLimits;
  readonly #last: string[] = [];
  #lines = 0;
  #length = 0;
  #leftOut = 0;

  constructor(write: (message: string) => void, limits: OutputLimits = OUTPUT_LIMITS) {
    this.#write = write;
    this.#limits = limits;
  }

  readonly add = (line: string, stream: Stream): void => {
    const text = cut(line.trim(), this.#limits.lineLength);
    if (text === "") return;
    const message = `[${stream}]: ${text}`;
    this.#lines += 1;
    this.#length += message.length;
    if (this.#lines <= this.#limits.firstLines && this.#length <= this.#limits.firstLength) {
      this.#write(message);
      return;
    }
    this.#last.push(message);
    if (this.#last.length <= this.#limits.lastLines) return;
    this.#last.shift();
    this.#leftOut += 1;
  };

  /** Logs the rest. Call it once, when the command has ended. */
  end(): void {
    if (this.#leftOut > 0) this.#write(`… ${this.#leftOut} lines were left out …`);
    for (const message of this.#last) this.#write(message);
  }
}
