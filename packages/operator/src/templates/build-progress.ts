// Shows the log of a build as one line for each step. On a terminal the current step has a line of its own that says what it does; anywhere
// else a step that takes long gets a line when it begins, and nothing moves.

import { formatDuration, painter, printable } from "../terminal/text.ts";
import type { BuildEnd, BuildLogEntry } from "./follow-build.ts";

interface CurrentStep {
  readonly title: string;
  readonly isCached: boolean;
  readonly startedAt: number;
  /** Why it is not cached. */
  reason: string;
  doing: string;
}

const STEP = /^(CACHED )?\[(base|finalize|optimize|builder (\d+\/\d+))\] (.*)$/s;
const OUTPUT = /^\[[^\]]*\] \[(?:stdout|stderr)\]: (.*)$/s;
const NOT_CACHED = /^\[builder [^\]]*\] not cached: (.*)$/s;
const KEY = / \[[0-9a-f]{16,}\]$/;
const MOST_OUTPUT = 30;
const SLOW_MS = 2_000;
const FRAMES = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

export interface ProgressOptions {
  readonly stream: NodeJS.WriteStream;
  /** Whether all lines of the log are shown. */
  readonly isVerbose: boolean;
}

export class BuildProgress {
  readonly #stream: NodeJS.WriteStream;
  readonly #isVerbose: boolean;
  readonly #paint: ReturnType<typeof painter>;
  readonly #timer: NodeJS.Timeout;
  #current: CurrentStep | undefined;
  #output: string[] = [];
  #lastAt = 0;
  #frame = 0;
  #isSlow = false;
  /** Steps of the template, and how many of them were cached. */
  readonly counts = { steps: 0, cached: 0 };

  constructor({ stream, isVerbose }: ProgressOptions) {
    this.#stream = stream;
    this.#isVerbose = isVerbose;
    this.#paint = painter(stream);
    this.#timer = setInterval(() => this.#draw(), 100);
  }

  readonly add = (entry: BuildLogEntry): void => {
    const at = Date.parse(entry.timestamp);
    this.#lastAt = at;
    const output = OUTPUT.exec(entry.message)?.[1];
    const notCached = NOT_CACHED.exec(entry.message)?.[1];
    if (output !== undefined) this.#addOutput(output);
    else if (notCached !== undefined && this.#current !== undefined) this.#current.reason = notCached;
    else if (!this.#begin(entry.message, at)) this.#addOther(entry);
  };

  /** Returns true when the line begins a step. */
  #begin(message: string, at: number): boolean {
    const [matched, cached, , number, rest = ""] = STEP.exec(message) ?? [];
    // Only the lines that begin a step have its key.
    if (matched === undefined || !KEY.test(rest)) return false;
    this.#endStep("✓", at);
    const isCached = cached !== undefined;
    const title = [number, rest.replace(KEY, "").replace(/\s+/g, " ").trim()].filter((part) => part !== undefined).join(" ");
    this.#current = { title, isCached, startedAt: at, reason: "", doing: "" };
    this.#output = [];
    this.#isSlow = false;
    if (number !== undefined) {
      this.counts.steps++;
      if (isCached) this.counts.cached++;
    }
    return true;
  }

  #addOutput(text: string): void {
    this.#output.push(text);
    if (this.#output.length > MOST_OUTPUT) this.#output.shift();
    if (this.#current !== undefined) this.#current.doing = text;
    if (this.#isVerbose) this.#line(this.#paint("dim", `    ${printable(text)}`));
  }

  #addOther({ level, message }: BuildLogEntry): void {
    if (level === "warn") this.#line(`${this.#paint("warn", "!")} ${printable(message)}`);
    else if (this.#isVerbose) this.#line(this.#paint("dim", `  ${printable(message)}`));
    else if (level === "info" && this.#current !== undefined) this.#current.doing = message;
  }

  /** Ends the line of the last step, and shows the output of a step that failed. */
  end(end: BuildEnd): void {
    clearInterval(this.#timer);
    this.#endStep(end.status === "ready" ? "✓" : "✗", this.#lastAt);
    if (end.status === "ready" || this.#isVerbose || end.step === "") return;
    for (const text of this.#output) this.#line(`    ${printable(text)}`);
  }

  /** Stops to show anything: the build goes on. */
  detach(): void {
    clearInterval(this.#timer);
    this.#clear();
    this.#current = undefined;
  }

  #endStep(mark: "✓" | "✗", at: number): void {
    const step = this.#current;
    if (step === undefined) return;
    this.#current = undefined;
    const tone = mark === "✗" ? "bad" : "good";
    const facts = step.isCached ? "CACHED" : `${formatDuration(Math.max(0, at - step.startedAt))}${reasonText(step.reason)}`;
    this.#line(`${this.#paint(tone, mark)} ${this.#fit(step.title, facts.length + 6)}  ${this.#paint("dim", `(${facts})`)}`);
  }

  #line(text: string): void {
    this.#clear();
    this.#stream.write(`${text}\n`);
  }

  #clear(): void {
    if (this.#stream.isTTY) this.#stream.write("\r\u001b[2K");
  }

  /** Shortens a title on a terminal, whose line must not break. A log keeps a whole command up to a limit. */
  #fit(title: string, reserved: number): string {
    const width = this.#stream.isTTY ? Math.max(20, (this.#stream.columns ?? 80) - reserved) : 200;
    const text = printable(title);
    return text.length <= width ? text : `${text.slice(0, width - 1)}…`;
  }

  #draw(): void {
    const step = this.#current;
    if (step === undefined) return;
    const elapsed = Date.now() - step.startedAt;
    if (!this.#stream.isTTY) {
      if (this.#isSlow || step.isCached || elapsed < SLOW_MS) return;
      this.#isSlow = true;
      this.#line(`… ${this.#fit(step.title, 0)}`);
      return;
    }
    const head = `${FRAMES[this.#frame++ % FRAMES.length]} ${this.#fit(step.title, 30)}  ${formatDuration(Math.max(0, elapsed))}`;
    const room = Math.max(0, (this.#stream.columns ?? 80) - head.length - 3);
    this.#clear();
    this.#stream.write(`${head}  ${printable(step.doing).slice(0, room)}`);
  }
}

function reasonText(reason: string): string {
  return reason === "" || reason.startsWith("first build") ? "" : `, ${reason}`;
}
