import type { WriteStream } from "node:tty";
import { styleText } from "node:util";

export type Tone = "good" | "bad" | "warn" | "dim" | "strong";

const FORMATS = { good: "green", bad: "red", warn: "yellow", dim: "dim", strong: "bold" } as const;

/** Colours text for this stream: only on a terminal, never with NO_COLOR. */
export function painter(stream: NodeJS.WriteStream): (tone: Tone, text: string) => string {
  const tty = stream as Partial<WriteStream>;
  const colours = tty.isTTY === true && process.env.NO_COLOR === undefined && process.env.TERM !== "dumb";
  return (tone, text) => (colours ? styleText(FORMATS[tone], text, { validateStream: false }) : text);
}

/** Text from elsewhere (a guest, a subprocess) with everything escaped that could move the cursor or change colours. */
export function printable(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this is about.
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, (character) => {
    return `\\x${character.charCodeAt(0).toString(16).padStart(2, "0")}`;
  });
}

/** "0.4 s", "12 s", "3 min 05 s": three digits at most, as people say it. */
export function formatDuration(milliseconds: number): string {
  if (milliseconds < 9_950) return `${(milliseconds / 1000).toFixed(1)} s`;
  const seconds = Math.round(milliseconds / 1000);
  if (seconds < 60) return `${seconds} s`;
  return `${Math.floor(seconds / 60)} min ${String(seconds % 60).padStart(2, "0")} s`;
}
