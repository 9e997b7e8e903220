import { expect, it } from "vitest";
import { OutputLog, ProcessOutput } from "./output-log.ts";

const bytes = (text: string) => Buffer.from(text);
const textsAfter = (log: OutputLog, after = 0, source = log.source) => {
  const texts: string[] = [];
  log.follow({ source, after }, ({ text }) => texts.push(text))();
  return texts;
};

it("makes lines of what arrives in any pieces, of each stream by itself", () => {
  const log = new OutputLog();
  const output = new ProcessOutput(log, 7);
  const euro = bytes("€\n");
  output.write("stdout", bytes("one\r\ntw"));
  output.write("stderr", bytes("wrong\n"));
  output.write("stdout", bytes("o\n\n"));
  for (const byte of euro) output.write("stdout", Uint8Array.of(byte));
  output.write("stdout", bytes("no end"));
  expect(textsAfter(log)).toEqual(["one", "wrong", "two", "", "€"]);
  output.end();
  expect(textsAfter(log, 5)).toEqual(["no end"]);
});

it("logs a line without an end in parts, and keeps what fits", () => {
  const log = new OutputLog();
  const output = new ProcessOutput(log, 7);
  output.write("stdout", bytes("x".repeat(20_000)));
  expect(textsAfter(log).map(({ length }) => length)).toEqual([8_192, 8_192]);
  for (let line = 0; line < 3_000; line += 1) output.write("stdout", bytes(`${line}\n`));
  const kept = textsAfter(log);
  expect(kept).toHaveLength(1_000);
  expect(kept.at(-1)).toBe("2999");
  for (let line = 0; line < 200; line += 1) output.write("stdout", bytes(`${"y".repeat(8_000)}\n`));
  expect(textsAfter(log).reduce((sum, { length }) => sum + length, 0)).toBeLessThanOrEqual(512 * 1024);
});

it("goes on after a line, and begins anew for another sandbox", () => {
  const log = new OutputLog();
  const output = new ProcessOutput(log, 7);
  output.write("stdout", bytes("1\n2\n3\n"));
  const { source } = log;
  expect(textsAfter(log, 2)).toEqual(["3"]);
  expect(textsAfter(log, 2, "another")).toEqual(["1", "2", "3"]);
  log.reset();
  expect(textsAfter(log)).toEqual([]);
  output.write("stdout", bytes("of the fork\n"));
  expect(textsAfter(log, 3, source)).toEqual(["of the fork"]);
});
