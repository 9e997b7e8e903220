import { expect, it } from "vitest";
import { parseKernelMounts } from "./kernel-mounts.ts";

it("finds where the kernel shows itself", () => {
  const text = "none / 9p rw 0 0\nnone /proc proc rw 0 0\nsys /odd\\040name sysfs ro 0 0\ntmpfs /dev/shm tmpfs rw 0 0\n";
  expect(parseKernelMounts(text)).toEqual(["/proc", "/odd name"]);
});
