import { expect, it } from "vitest";
import { imageSizeFor } from "./image-size.ts";

it.each([8, 64, 512, 1024, 10_240, 1024 * 1024])("leaves room for the tables of a disk of %d MiB, and little more", (sizeMb) => {
  const { imageBytes, journalMb } = imageSizeFor(sizeMb);
  const imageMb = imageBytes / 1024 / 1024;
  expect(Number.isInteger(imageMb)).toBe(true);
  expect(imageMb).toBeGreaterThanOrEqual(sizeMb + journalMb + sizeMb / 32);
  expect(imageMb).toBeLessThan(sizeMb * 1.04 + journalMb + 6);
});

it("never ends in a group of blocks that mkfs would leave out", () => {
  for (let sizeMb = 8; sizeMb < 2000; sizeMb += 1) {
    const rest = (imageSizeFor(sizeMb).imageBytes / 1024 / 1024) % 128;
    expect(rest === 0 || rest >= 4, `${sizeMb}`).toBe(true);
  }
});

it.each([0, 7, 1.5, -8, Number.NaN, 2 ** 40])("refuses %d", (sizeMb) => {
  expect(() => imageSizeFor(sizeMb)).toThrow(RangeError);
});
