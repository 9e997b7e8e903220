import { open } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { formatLogLine } from "./log-line.ts";

const CHUNK_BYTES = 64 * 1024;
const POLL_MS = 200;

/** Prints the last lines of a log file. With `follow`, keeps printing new lines until that signal fires. */
export async function followLog(path: string, options: { lines: number; follow: AbortSignal | undefined; json: boolean }): Promise<void> {
  const { lines, follow, json } = options;
  const print = (line: string) => process.stdout.write(`${json ? line : formatLogLine(line)}\n`);
  await using file = await open(path, "r");
  const size = (await file.stat()).size;
  for (const line of await lastLines(file, size, lines)) print(line);
  if (!follow) return;
  let position = size;
  let rest = "";
  while (!follow.aborted) {
    const { bytesRead, buffer } = await file.read(Buffer.alloc(CHUNK_BYTES), 0, CHUNK_BYTES, position);
    if (bytesRead === 0) {
      // The daemon truncates its log when it rotates it.
      if ((await file.stat()).size < position) position = 0;
      else await sleep(POLL_MS, undefined, { signal: follow }).catch(() => {});
      continue;
    }
    position += bytesRead;
    const parts = (rest + buffer.subarray(0, bytesRead).toString("utf8")).split("\n");
    rest = parts.pop() ?? "";
    for (const line of parts) print(line);
  }
}

/** Reads backwards in blocks, so that the cost does not depend on the size of the log. */
async function lastLines(file: Awaited<ReturnType<typeof open>>, size: number, count: number): Promise<string[]> {
  if (count === 0) return [];
  let text = Buffer.alloc(0);
  let start = size;
  while (start > 0 && text.filter((byte) => byte === 10).length <= count) {
    const length = Math.min(CHUNK_BYTES, start);
    start -= length;
    const { buffer } = await file.read(Buffer.alloc(length), 0, length, start);
    text = Buffer.concat([buffer, text]);
  }
  return text
    .toString("utf8")
    .replace(/\n$/, "")
    .split("\n")
    .slice(-count)
    .filter((line) => line !== "");
}
