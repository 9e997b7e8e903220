import { expect, it } from "vitest";
import { parseLdd } from "./sources.ts";

it("finds the loader and the libraries", () => {
  const output = [
    "\tlinux-vdso.so.1 (0x00007ff1)",
    "\tlibm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007ff2)",
    "\t/lib64/ld-linux-x86-64.so.2 (0x00007ff3)",
  ].join("\n");
  expect(parseLdd(output)).toEqual(["/lib/x86_64-linux-gnu/libm.so.6", "/lib64/ld-linux-x86-64.so.2"]);
});

it("names a library that is not there", () => {
  expect(() => parseLdd("\tlibfoo.so.1 => not found")).toThrow("libfoo.so.1");
});
