// Follows what the agent of a sandbox logs, on one connection. A guest may have taken over its agent, so lines are bounded and checked: it can
// spoil its own log, and nothing else.

import { type IncomingMessage, request } from "node:http";
import { createInterface } from "node:readline";
import { Transform } from "node:stream";
import { AGENT_OUTPUT_PATH } from "@skerry/wire";
import { Type } from "typebox";
import { Value } from "typebox/value";
import { connectAgent } from "../agent/exchange.ts";
import type { OutputLine } from "./output-book.ts";

const MAX_SOURCE_CHARACTERS = 64;
/** A line of the log with its escapes, and fields around it. */
const MAX_LINE_BYTES = 128 * 1024;

const HEAD = Type.Object({ source: Type.String({ maxLength: MAX_SOURCE_CHARACTERS }) });
const LINE = Type.Object({
  number: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
  at: Type.Number(),
  pid: Type.Integer(),
  stream: Type.Union([Type.Literal("stdout"), Type.Literal("stderr"), Type.Literal("pty")]),
  text: Type.String({ maxLength: 16_384 }),
});

export interface Place {
  readonly source: string;
  readonly number: number;
}

/**
 * Calls `onLine` for each line after `place`, until the connection ends or `signal` is aborted. Rejects when there is no connection, or
 * what comes is malformed.
 */
export async function followOutput(
  agent: { readonly address: string; readonly accessToken: string },
  options: { readonly place: Place; readonly signal: AbortSignal; readonly onLine: (line: OutputLine) => void },
): Promise<void> {
  const { place, signal, onLine } = options;
  const socket = await connectAgent(agent.address);
  const stop = () => socket.destroy();
  signal.addEventListener("abort", stop, { once: true });
  try {
    signal.throwIfAborted();
    const path = `${AGENT_OUTPUT_PATH}?source=${encodeURIComponent(place.source)}&after=${place.number}`;
    const headers = { Host: "agent", ...(agent.accessToken === "" ? {} : { "X-Access-Token": agent.accessToken }) };
    const outgoing = request({ createConnection: () => socket, path, method: "GET", headers });
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      outgoing.once("response", resolve);
      outgoing.on("error", reject);
      outgoing.end();
    });
    if (response.statusCode !== 200) throw new Error(`the agent answered ${response.statusCode}`);
    const reader = new Reader(place, onLine);
    const lines = createInterface({ input: response.pipe(limitLines()), crlfDelay: Number.POSITIVE_INFINITY });
    for await (const text of lines) reader.take(text);
  } finally {
    signal.removeEventListener("abort", stop);
    socket.destroy();
  }
}

class Reader {
  readonly #onLine: (line: OutputLine) => void;
  #place: Place;
  #source: string | undefined;
  /** Whether the lines before the next one are known. */
  #isKnown = true;

  constructor(place: Place, onLine: (line: OutputLine) => void) {
    this.#place = place;
    this.#onLine = onLine;
  }

  take(text: string): void {
    const value: unknown = JSON.parse(text);
    if (this.#source === undefined) {
      if (!Value.Check(HEAD, value)) throw new Error("the agent named no source");
      this.#source = value.source;
      this.#isKnown = this.#place.source === value.source;
      if (!this.#isKnown) this.#place = { source: value.source, number: 0 };
      return;
    }
    if (!Value.Check(LINE, value) || value.number <= this.#place.number) throw new Error("a line of the agent is malformed");
    const { number, at, pid, stream, text: said } = value;
    const omitted = this.#isKnown ? number - this.#place.number - 1 : 0;
    this.#isKnown = true;
    this.#place = { source: this.#source, number };
    this.#onLine({ source: this.#source, number, timeMs: at, pid, stream, text: said, omitted });
  }
}

/** Fails when a line is longer than any that an agent sends, before it is held in memory. */
function limitLines(): Transform {
  let bytes = 0;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      const end = chunk.lastIndexOf(10);
      bytes = end < 0 ? bytes + chunk.length : chunk.length - end - 1;
      if (bytes > MAX_LINE_BYTES) done(new Error("a line of the agent is too long"));
      else done(null, chunk);
    },
  });
}
