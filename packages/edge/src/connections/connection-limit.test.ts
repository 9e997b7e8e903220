import { expect, test } from "vitest";
import { connectionLimit } from "./connection-limit.ts";
import { openFilesLimit, parseOpenFiles } from "./open-files.ts";

test("two descriptors per connection leave a fifth of the limit free", () => {
  expect([1, 1024, 20_000, 1_048_576, Number.POSITIVE_INFINITY].map(connectionLimit)).toEqual([1, 409, 8_000, 32_768, 32_768]);
});

test("the soft limit is read", () => {
  const line = (soft: string) =>
    `Limit  Soft Limit  Hard Limit  Units\nMax open files            ${soft}    524288   files     \nMax x  1 2 y\n`;
  expect(["1024", "unlimited"].map((soft) => parseOpenFiles(line(soft)))).toEqual([1024, Number.POSITIVE_INFINITY]);
  expect(parseOpenFiles("rubbish")).toBe(1024);
  expect(openFilesLimit()).toBeGreaterThan(0);
});
