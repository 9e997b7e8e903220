import { expect, it } from "vitest";
import { crc32c } from "./crc32c.ts";

// RFC 3720, B.4, before the inversion that it ends with.
it.each([
  ["32 zeros", new Uint8Array(32), 0x8a9136aa],
  ["32 ones", new Uint8Array(32).fill(0xff), 0x62a8ab43],
  ["32 ascending", Uint8Array.from({ length: 32 }, (_, index) => index), 0x46dd794e],
])("of %s", (_what, bytes, inverted) => {
  expect((~crc32c(bytes) >>> 0).toString(16)).toBe((inverted as number).toString(16));
});
