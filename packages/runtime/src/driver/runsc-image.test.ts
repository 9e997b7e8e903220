import { expect, it } from "vitest";
import { missingFileIn } from "./runsc-image.privileged.ts";

it("names the file of a volume that a restore misses, as the runtime logs it", () => {
  const logged = (name: string) =>
    `{"msg":"starting container: restoring container \\"i1\\": failed to load kernel: vfs.CompleteRestore() failed: failed to complete restore for filesystem type \\"9p\\": failed to walk \\"${name}\\" of type 0100000 in mount \\"__no_name_0:/data\\": no such file or directory","level":"error"}`;
  const why = (path: string) => `a process had "${path}" open, which was removed from its volume or replaced meanwhile`;
  expect(missingFileIn(logged("open"))).toBe(why("/data/open"));
  expect(missingFileIn(logged("a/b c"))).toBe(why("/data/a/b c"));
  expect(missingFileIn(logged("x".repeat(5000)))).toBeUndefined();
  expect(missingFileIn("another failure")).toBeUndefined();
});
