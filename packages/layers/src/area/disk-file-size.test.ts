import { expect, it } from "vitest";
import { diskFileSizeFor } from "./disk-file-size.ts";

it.each([8, 64, 512, 1024, 10_240, 1024 * 1024])("leaves room for the tables of a disk of %d MiB, and little more", (sizeMb) => {
  const { fileBytes, journalMb } = diskFileSizeFor(sizeMb);
  const fileMb = fileBytes / 1024 / 1024;
  expect(Number.isInteger(fileMb)).toBe(true);
  expect(fileMb).toBeGreaterThanOrEqual(sizeMb + journalMb + sizeMb / 32);
  expect(fileMb).toBeLessThan(sizeMb * 1.04 + journalMb + 6);
});

it("never ends in a group of blocks that mkfs would leave out", () => {
  for (let sizeMb = 8; sizeMb < 2000; sizeMb += 1) {
    const rest = (diskFileSizeFor(sizeMb).fileBytes / 1024 / 1024) % 128;
    expect(rest === 0 || rest >= 4, `${sizeMb}`).toBe(true);
  }
});

it.each([0, 7, 1.5, -8, Number.NaN, 2 ** 40])("refuses %d", (sizeMb) => {
  expect(() => diskFileSizeFor(sizeMb)).toThrow(RangeError);
});
