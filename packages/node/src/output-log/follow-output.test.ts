import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { AGENT_PORT } from "@skerry/wire";
import { expect, it } from "vitest";
import { followOutput } from "./follow-output.ts";
import type { OutputLine } from "./output-book.ts";

/** An agent that a guest has taken over. */
async function heard(answer: (res: ServerResponse) => void): Promise<{ lines: OutputLine[]; error: string }> {
  const server = createServer((_req, res) => answer(res));
  // Another address for each run, because the port of agents is fixed.
  const address = `127.${1 + Math.floor(Math.random() * 250)}.${Math.floor(Math.random() * 250)}.1`;
  await new Promise<void>((resolve) => server.listen(AGENT_PORT, address, resolve));
  expect((server.address() as AddressInfo).address).toBe(address);
  const lines: OutputLine[] = [];
  const signal = AbortSignal.timeout(20_000);
  const place = { source: "", number: 0 };
  const error = await followOutput({ address, accessToken: "" }, { place, signal, onLine: (line) => lines.push(line) }).then(
    () => "",
    (failure: unknown) => String(failure),
  );
  server.closeAllConnections();
  server.close();
  return { lines, error };
}

const line = (number: number, more: object = {}) => `${JSON.stringify({ number, at: 5, pid: 1, stream: "stdout", text: "x", ...more })}\n`;
const HEAD = `${JSON.stringify({ source: "s" })}\n`;

it("takes lines, and counts those that are missing in between", async () => {
  const { lines, error } = await heard((res) => res.end(HEAD + line(4) + line(5) + line(9)));
  expect(error).toBe("");
  expect(lines.map(({ number, omitted }) => [number, omitted])).toEqual([
    [4, 0],
    [5, 0],
    [9, 3],
  ]);
});

it.each([
  ["no source", line(1), "named no source"],
  ["numbers that fall", HEAD + line(2) + line(1), "malformed"],
  ["a number that is none", HEAD + line(1, { number: 1e300 }), "malformed"],
  ["another stream", HEAD + line(1, { stream: "evil" }), "malformed"],
  ["a long text", HEAD + line(1, { text: "x".repeat(20_000) }), "malformed"],
  ["no JSON", `${HEAD}nonsense\n`, "JSON"],
])("breaks off at %s", async (_what, answer, expected) => {
  expect((await heard((res) => res.end(answer))).error).toContain(expected);
});

it("does not hold a line that never ends", async () => {
  const endless = (res: ServerResponse) => {
    const write = () => {
      while (!res.destroyed && res.write("x".repeat(65_536)));
      if (!res.destroyed) res.once("drain", write);
    };
    write();
  };
  expect((await heard(endless)).error).toContain("too long");
});
