// Listings of directories that are larger, deeper or stranger than usual.

import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { type ClientRequest, type IncomingMessage, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { createClient } from "@connectrpc/connect";
import { Filesystem } from "@skerry/wire/filesystem";
import { beforeAll, beforeEach, expect, it } from "vitest";
import { agentOfFile, failure, run } from "./agent-under-test.ts";

const agent = await agentOfFile();

/** Enough that their JSON exceeds the part that the agent buffers before it sends the first byte. */
const ENTRIES = 14_000;
let many: string;
const names = Array.from({ length: ENTRIES }, (_, at) => `${String(at).padStart(5, "0")}${"n".repeat(250)}`);

beforeAll(() => {
  many = mkdtempSync(join(tmpdir(), "skerry-many-"));
  for (const name of names) writeFileSync(join(many, name), "");
  return () => rmSync(many, { recursive: true });
});

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "skerry-list-"));
  return () => rmSync(folder, { recursive: true });
});

it.each([{ binary: false }, { binary: true }])("lists all entries of a large directory in order (binary: $binary)", async (format) => {
  const { entries } = await createClient(Filesystem, agent.transport(format)).listDir({ path: many });
  expect(entries.map(({ name }) => name)).toEqual(names);
  expect(entries.at(-1)).toMatchObject({ path: join(many, names.at(-1) ?? ""), permissions: "-rw-r--r--", owner: "root", size: 0n });
});

it("serves other requests during a listing", async () => {
  const order: string[] = [];
  const list = agent.filesystem.listDir({ path: many }).then(() => order.push("list"));
  for (let count = 0; count < 5; count++) await agent.fetch("/health").then(() => order.push("health"));
  await list;
  expect(order).toEqual([...Array(5).fill("health"), "list"]);
});

it("serves others while clients do not read their listings, and stops when they disconnect", async () => {
  const stalled = await Promise.all(Array.from({ length: 8 }, () => startListing(many)));
  const { entries } = await agent.filesystem.listDir({ path: many });
  expect(entries).toHaveLength(ENTRIES);
  for (const { outgoing } of stalled) outgoing.destroy();
  expect((await agent.filesystem.listDir({ path: folder })).entries).toEqual([]);
});

it("reports an unreadable directory as an error before the first byte, and breaks the connection afterwards", async () => {
  await makeTooDeep(folder);
  expect(await failure(agent.filesystem.listDir({ path: folder, depth: 99 }))).toMatchObject({
    message: expect.stringMatching(/^error reading directory .*ENAMETOOLONG/),
  });
  const first = join(folder, "a");
  mkdirSync(first);
  expect(await run(agent, "cp", ["--archive", "--link", many, first])).toMatchObject({ exitCode: 0 });
  const { answer } = await startListing(folder, 99);
  expect(answer.statusCode).toBe(200);
  await expect(buffer(answer)).rejects.toThrow("aborted");
});

it("shows the nearest time that the wire supports for files of the far future and past", async () => {
  const memory = mkdtempSync("/dev/shm/skerry-times-");
  try {
    writeFileSync(join(memory, "future"), "");
    utimesSync(join(memory, "future"), 253_402_300_800, 253_402_300_800);
    const { entries } = await agent.filesystem.listDir({ path: memory });
    expect(entries.map(({ modifiedTime }) => modifiedTime)).toMatchObject([{ seconds: 253_402_300_799n, nanos: 999_999_999 }]);
    const { entry } = await agent.filesystem.stat({ path: join(memory, "future") });
    expect(entry?.modifiedTime).toMatchObject({ seconds: 253_402_300_799n });
  } finally {
    rmSync(memory, { recursive: true });
  }
});

function startListing(path: string, depth = 1): Promise<{ outgoing: ClientRequest; answer: IncomingMessage }> {
  return new Promise((resolve, reject) => {
    const outgoing = request(`${agent.url}/filesystem.Filesystem/ListDir`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
    });
    outgoing.on("error", reject);
    outgoing.once("response", (answer) => resolve({ outgoing, answer }));
    outgoing.end(JSON.stringify({ path, depth }));
  });
}

/** Nests directories until the path of the last one is too long for a system call. */
async function makeTooDeep(path: string): Promise<void> {
  const name = "z".repeat(250);
  const script = `cd "$1" && for i in $(seq 18); do mkdir ${name} && cd ${name} || exit 1; done`;
  expect(await run(agent, "bash", ["-c", script, "-", path])).toMatchObject({ exitCode: 0 });
}
