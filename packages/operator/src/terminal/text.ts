import type { WriteStream } from "node:tty";
import { styleText } from "node:util";

export type Tone = "good" | "bad" | "warn" | "dim" | "strong";

const FORMATS = { good: "green", bad: "red", warn: "yellow", dim: "dim", strong: "bold" } as const;

/** Returns a function that colours text if the stream is a terminal and NO_COLOR is not set. */
export function painter(stream: NodeJS.WriteStream): (tone: Tone, text: string) => string {
  const tty = stream as Partial<WriteStream>;
  const colours = tty.isTTY === true && process.env.NO_COLOR === undefined && process.env.TERM !== "dumb";
  return (tone, text) => (colours ? styleText(FORMATS[tone], text, { validateStream: false }) : text);
}

/** Escapes control characters in text of a guest or subprocess, so that it cannot move the cursor or change colours. */
export function printable(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the expression matches control characters.
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, (character) => {
    return `\\x${character.charCodeAt(0).toString(16).padStart(2, "0")}`;
  });
}

/** A duration with at most three digits: "0.4 s", "12 s", "3 min 05 s". */
export function formatDuration(milliseconds: number): string {
  if (milliseconds < 9_950) return `${(milliseconds / 1000).toFixed(1)} s`;
  const seconds = Math.round(milliseconds / 1000);
  if (seconds < 60) return `${seconds} s`;
  return `${Math.floor(seconds / 60)} min ${String(seconds % 60).padStart(2, "0")} s`;
}
