import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { changePortRange } from "./port-range.ts";

test("takes the two halves in turn, and leaves alone what a guest has set", () => {
  const dir = mkdtempSync(join(tmpdir(), "skerry-ports-"));
  const file = join(dir, "range");
  const changed = (range: string) => {
    writeFileSync(file, range);
    changePortRange(file);
    return readFileSync(file, "utf8");
  };
  expect(changed("16000\t65535\n")).toBe("16000 40767");
  expect(changed("16000\t40767\n")).toBe("40768 65535");
  expect(changed("40768\t65535\n")).toBe("16000 40767");
  expect(changed("20000\t30000\n")).toBe("20000\t30000\n");
  rmSync(dir, { recursive: true });
  expect(() => changePortRange(file)).not.toThrow();
});
