import { closeSync, constants, mkdtempSync, openSync, readFileSync, readSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createLogger } from "./log.ts";
import { LogOutput } from "./log-output.ts";
import { runCommand, spawnCommand } from "./subprocess.ts";

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "log-output-"));
});
afterEach(() => rmSync(dir, { recursive: true }));

test("lines that a full disk drops are counted, and nothing throws", () => {
  const logger = createLogger({ name: "test", level: "info", fd: openSync("/dev/full", "w") });
  for (let i = 0; i < 10_000; i += 1) logger.info({ i }, "a line");
});

/** A pipe whose other end is open and is not read. */
async function openPipe(): Promise<{ reader: number; writer: number }> {
  const path = join(dir, "pipe");
  await runCommand("mkfifo", [path]);
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  return { reader, writer: openSync(path, "w") };
}

function readAll(fd: number): string {
  const buffer = Buffer.alloc(1 << 20);
  let text = "";
  try {
    for (let read = readSync(fd, buffer); read > 0; read = readSync(fd, buffer)) text += buffer.toString("utf8", 0, read);
  } catch (error) {
    expect((error as NodeJS.ErrnoException).code).toBe("EAGAIN");
  }
  return text;
}

test("writing never waits for a reader, which later gets whole lines in order and the number of dropped lines", async () => {
  const { reader, writer } = await openPipe();
  let dropped = 0;
  const output = new LogOutput({
    fd: writer,
    keptBytes: 10_000,
    onDropped: (lines) => {
      dropped += lines;
      output.write(`${lines} are missing\n`);
    },
  });
  const all = Array.from({ length: 20_000 }, (_, i) => `line ${i}`);
  for (const line of all) output.write(`${line}\n`);
  let text = readAll(reader);
  await vi.waitFor(() => {
    text += readAll(reader);
    expect(text).toMatch(/are missing\n$/);
  }, 60_000);
  const lines = text.trim().split("\n");
  expect(lines.pop()).toBe(`${dropped} are missing`);
  expect(lines).toEqual(all.slice(0, all.length - dropped));
  expect(dropped).toBeGreaterThan(1_000);
  closeSync(reader);
  closeSync(writer);
});

test("a process that ends still writes the rest to a slow reader", async () => {
  const script = join(dir, "writer.ts");
  const module = JSON.stringify(join(import.meta.dirname, "log.ts"));
  writeFileSync(
    script,
    `import { createLogger } from ${module};
    const logger = createLogger({ name: "test", level: "info" });
    for (let i = 0; i < 1500; i += 1) logger.info({ i }, "a line of some length, so that a pipe does not hold all of them at once");`,
  );
  const { reader, writer } = await openPipe();
  const child = spawnCommand(process.execPath, [script], { stdout: writer, stderr: "ignore" });
  closeSync(writer);
  let text = "";
  const ended = new Promise((resolve) => child.once("exit", resolve));
  const reading = setInterval(() => {
    text += readAll(reader);
  }, 5);
  await ended;
  clearInterval(reading);
  text += readAll(reader);
  expect(text.trim().split("\n")).toHaveLength(1_500);
  closeSync(reader);
});

test("lines are written to a file at once", () => {
  const path = join(dir, "log");
  const logger = createLogger({ name: "test", level: "info", fd: openSync(path, "a") });
  logger.info({ a: 1 }, "first");
  expect(JSON.parse(readFileSync(path, "utf8"))).toMatchObject({ a: 1, msg: "first", component: "test" });
});
