// Bounds the log of a build. A step can write without end; what is stored is the beginning of the log and its last lines.

import type { BuildLogLine } from "@skerry/store";

export interface LogBounds {
  readonly maxLines: number;
  readonly maxCharacters: number;
  /** Lines kept from the end of a log that is too long. */
  readonly tailLines: number;
  readonly maxLineCharacters: number;
}

export const LOG_BOUNDS: LogBounds = { maxLines: 20_000, maxCharacters: 4 * 1024 * 1024, tailLines: 200, maxLineCharacters: 8_192 };

export class LogLimit {
  readonly #bounds: LogBounds;
  #lines: number;
  #characters: number;
  #isFull = false;
  #dropped = 0;
  #tail: BuildLogLine[] = [];

  constructor(stored: { readonly lines: number; readonly characters: number }, bounds = LOG_BOUNDS) {
    this.#bounds = bounds;
    this.#lines = stored.lines;
    this.#characters = stored.characters;
  }

  /** The lines to store now. */
  take(lines: readonly BuildLogLine[]): readonly BuildLogLine[] {
    const kept: BuildLogLine[] = [];
    for (const line of lines) {
      const clean = { ...line, message: cleanText(line.message, this.#bounds.maxLineCharacters) };
      if (this.#isFull) {
        this.#hold(clean);
        continue;
      }
      this.#lines += 1;
      this.#characters += clean.message.length;
      this.#isFull = this.#lines > this.#bounds.maxLines || this.#characters > this.#bounds.maxCharacters;
      if (this.#isFull) {
        kept.push({ ...clean, level: "warn", message: "The log is too long: of the lines from here on, only the last ones are kept" });
        this.#hold(clean);
      } else kept.push(clean);
    }
    return kept;
  }

  /** What is left to store at the end of the build. */
  rest(): readonly BuildLogLine[] {
    const [first] = this.#tail;
    const note = first && this.#dropped > 0 && { ...first, level: "warn" as const, message: `${this.#dropped} lines were left out` };
    return [...(note ? [note] : []), ...this.#tail];
  }

  #hold(line: BuildLogLine): void {
    this.#tail.push(line);
    if (this.#tail.length <= this.#bounds.tailLines) return;
    this.#tail.shift();
    this.#dropped += 1;
  }
}

/** PostgreSQL stores no NUL. */
function cleanText(text: string, max: number): string {
  const clean = text.replaceAll("\0", "\uFFFD");
  return clean.length > max ? `${clean.slice(0, max)}…` : clean;
}
