import { mkdtempSync, openSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { spawnCommand } from "@skerry/base";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { followLog } from "../terminal/follow-log.ts";
import { rotateLog } from "./log-rotation.ts";

let dir: string;
let path: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "log-"));
  path = join(dir, "skerry.log");
});
afterEach(() => rmSync(dir, { recursive: true }));

test("one older log is kept", () => {
  rotateLog(path, 5);
  for (const text of ["first log\n", "second log\n"]) {
    writeFileSync(path, text);
    rotateLog(path, 5);
    expect(readFileSync(path, "utf8")).toBe("");
    expect(readFileSync(`${path}.1`, "utf8")).toBe(text);
  }
  writeFileSync(path, "short");
  rotateLog(path, 5);
  expect(readFileSync(path, "utf8")).toBe("short");
});

/** Runs a process that writes numbered lines to the log and rotates it meanwhile. */
function startWriter(flags: "a" | "w"): ReturnType<typeof spawnCommand> {
  const script = `
    import { writeSync } from "node:fs";
    import { rotateOwnLog } from ${JSON.stringify(join(import.meta.dirname, "log-rotation.ts"))};
    using _rotation = rotateOwnLog(${JSON.stringify(path)}, { limitBytes: 2000, everyMs: 20 });
    for (let i = 0; i < 250; i += 1) {
      writeSync(1, "line " + i + "\\n");
      await new Promise((resolve) => setTimeout(resolve, 2));
    }`;
  const fd = openSync(path, flags);
  return spawnCommand(process.execPath, ["--input-type=module", "-e", script], { stdout: fd, stderr: fd });
}

const ended = (child: ReturnType<typeof spawnCommand>) => new Promise((resolve) => child.once("exit", resolve));

test("a process rotates its own log and loses no line", async () => {
  await ended(startWriter("a"));
  expect(statSync(path).size).toBeLessThan(2_000);
  const lines = [`${path}.1`, path].flatMap((file) => readFileSync(file, "utf8").trim().split("\n"));
  expect(lines).toEqual(Array.from({ length: 250 }, (_, i) => `line ${i}`));
});

test("a log that is not opened for appending is not rotated", async () => {
  await ended(startWriter("w"));
  expect(readFileSync(path, "utf8").trim().split("\n")).toHaveLength(250);
});

test("following a log continues after it was truncated", async () => {
  writeFileSync(path, "before\n");
  const written = vi.spyOn(process.stdout, "write").mockReturnValue(true);
  const stop = new AbortController();
  try {
    const following = followLog(path, { lines: 1, follow: stop.signal, json: true });
    await vi.waitFor(() => expect(written).toHaveBeenCalledWith("before\n"), { timeout: 60_000 });
    rotateLog(path, 0);
    await new Promise((resolve) => setTimeout(resolve, 500));
    writeFileSync(path, "after\n", { flag: "a" });
    await vi.waitFor(() => expect(written).toHaveBeenCalledWith("after\n"), { timeout: 60_000 });
    stop.abort();
    await following;
  } finally {
    written.mockRestore();
  }
});
