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
