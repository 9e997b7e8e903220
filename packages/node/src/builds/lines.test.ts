import { expect, it } from "vitest";
import { Lines } from "./lines.ts";

function linesOf(...pieces: (string | Uint8Array)[]): string[] {
  const found: string[] = [];
  const lines = new Lines((line) => void found.push(line));
  for (const piece of pieces) lines.add(typeof piece === "string" ? Buffer.from(piece) : piece);
  lines.end();
  return found;
}

it("splits output where lines end, wherever its pieces do", () => {
  expect(linesOf("a\nb", "c\n\nd")).toEqual(["a", "bc", "", "d"]);
  const letter = Buffer.from("é");
  expect(linesOf(letter.subarray(0, 1), letter.subarray(1), "\n")).toEqual(["é"]);
  expect(linesOf(Uint8Array.of(0xff, 0x0a))).toEqual(["\ufffd"]);
});

it("cuts a line without an end into several", () => {
  const found = linesOf(...Array.from({ length: 40 }, () => "x".repeat(1024)));
  expect(found.map((line) => line.length)).toEqual([16_384, 16_384, 8_192]);
  expect(linesOf(`${"y".repeat(20_000)}\nz`).map((line) => line.length)).toEqual([16_384, 3_616, 1]);
});
