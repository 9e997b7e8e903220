import { expect, it } from "vitest";
import { boundedLine, MAX_MESSAGE_CHARACTERS } from "./log-line.ts";

const line = { at: 1, level: "info", logger: "process", message: "", fields: {}, isGuest: true } as const;

it("shows what a terminal would act on", () => {
  expect(boundedLine({ ...line, message: "a\u001b[31mred\u0000\r\u009b\tb\nc" }).message).toBe("a\\x1b[31mred\\x00\\x0d\\x9b\tb\nc");
  expect(boundedLine({ ...line, message: "half \ud83d" }).message).toBe("half \ufffd");
  expect(boundedLine({ ...line, message: "ключ 🎉" }).message).toBe("ключ 🎉");
});

it("bounds every text, and the number of fields", () => {
  const fields = Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`${"n".repeat(100)}${index}`, "v".repeat(10_000)]));
  const bounded = boundedLine({ ...line, logger: "l".repeat(1_000), message: "m".repeat(1_000_000), fields });
  expect(bounded.message).toHaveLength(MAX_MESSAGE_CHARACTERS + 1);
  expect(JSON.stringify(bounded).length).toBeLessThan(40_000);
});
