// Prints the steps of a set-up, each with its duration. On a terminal, the current step has a spinner. Elsewhere (a log file, CI), a step
// gets one line when it ends, and one when it takes longer than SLOW_MS.

import type { Report, Steps } from "@skerry/setup";
import { formatDuration, painter } from "./text.ts";

const NAME_WIDTH = 18;
const FRAMES = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const SLOW_MS = 2_000;

export function createSteps(stream: NodeJS.WriteStream = process.stderr): Steps {
  const paint = painter(stream);
  const write = (line: string) => stream.write(`${line}\n`);
  return {
    async run(name, work, describe) {
      const startedAt = performance.now();
      const elapsed = () => formatDuration(performance.now() - startedAt);
      const progress = stream.isTTY ? spinner(stream, name, elapsed) : slowNotice(write, name);
      try {
        const result = await work(progress.report);
        progress.end();
        write(`${paint("good", "✓")} ${name.padEnd(NAME_WIDTH)} ${describe(result)} ${paint("dim", `(${elapsed()})`)}`);
        return result;
      } catch (error) {
        progress.end();
        write(`${paint("bad", "✗")} ${name.padEnd(NAME_WIDTH)} ${paint("dim", `(${elapsed()})`)}`);
        throw error;
      }
    },
    note: (text) => write(`  ${text}`),
    warn: (text) => write(`${paint("warn", "!")} ${text}`),
  };
}

interface Progress {
  readonly report: Report;
  end(): void;
}

function spinner(stream: NodeJS.WriteStream, name: string, elapsed: () => string): Progress {
  let doing = "";
  let frame = 0;
  const draw = () => {
    const width = (stream.columns ?? 80) - 1;
    const line = `${FRAMES[frame++ % FRAMES.length]} ${name.padEnd(NAME_WIDTH)} ${elapsed()}  ${doing}`;
    stream.write(`\r\u001b[2K${line.slice(0, width)}`);
  };
  draw();
  const timer = setInterval(draw, 100);
  return {
    report: (text) => {
      doing = text;
    },
    end: () => {
      clearInterval(timer);
      stream.write("\r\u001b[2K");
    },
  };
}

function slowNotice(write: (line: string) => void, name: string): Progress {
  let doing = "";
  let slow = false;
  const show = () => write(`… ${name.padEnd(NAME_WIDTH)} ${doing || "working"}`);
  const timer = setTimeout(() => {
    slow = true;
    show();
  }, SLOW_MS);
  return {
    report: (text) => {
      if (text === doing) return;
      doing = text;
      if (slow) show();
    },
    end: () => clearTimeout(timer),
  };
}
