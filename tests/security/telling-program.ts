// Programs in the network namespace of a simulated internet that tell the test what they were asked.

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

const [READY, MARK] = ["ready", "mark"];

export interface TellingProgram<Event> {
  /** What it has told since the last call, with all that it told before this call. */
  told(): Promise<Event[]>;
  stop(): void;
}

/** Runs a program that uses `tellingInput`. Resolves when it is ready. */
export async function startTellingProgram<Event>(namespace: string, program: string, input: object): Promise<TellingProgram<Event>> {
  const child = spawn("nsenter", [`--net=/run/netns/${namespace}`, process.execPath, program], { stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  async function toldUntil(mark: string): Promise<Event[]> {
    const events: Event[] = [];
    for (;;) {
      const { done, value } = await lines.next();
      if (done) throw new Error(`${program} has ended`);
      if (value === mark) return events;
      events.push(JSON.parse(value));
    }
  }
  const told = (message: string, mark: string) => {
    child.stdin.write(`${message}\n`);
    return toldUntil(mark);
  };
  await told(JSON.stringify(input), READY);
  return { told: () => told(MARK, MARK), stop: () => void child.kill("SIGKILL") };
}

/** For the program: what it was started with, and how it tells. It calls `ready` when it serves. */
export async function tellingInput<Input>(): Promise<{ input: Input; tell: (event: object) => void; ready: () => void }> {
  const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  const input = JSON.parse((await lines.next()).value ?? "") as Input;
  const write = (line: string) => void process.stdout.write(`${line}\n`);
  return {
    input,
    tell: (event) => write(JSON.stringify(event)),
    async ready() {
      write(READY);
      // A mark is repeated behind everything that was told before it came.
      for await (const mark of lines) write(mark);
    },
  };
}
