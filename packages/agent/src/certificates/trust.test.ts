import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { Trust, TrustError } from "./trust.ts";

let dir: string;
let paths: { bundle: string; source: string };
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "skerry-trust-"));
  paths = { bundle: join(dir, "bundle.crt"), source: join(dir, "local/e2b-ca.crt") };
});
afterEach(() => rmSync(dir, { recursive: true }));

it("appends one authority, once, and takes the one before it out", () => {
  writeFileSync(paths.bundle, "image\n");
  const trust = new Trust(paths);
  const finish = trust.add("first\n\n\n");
  expect(readFileSync(paths.bundle, "utf8")).toBe("image\nfirst\n");
  finish();
  expect(readFileSync(paths.source, "utf8")).toBe("first\n");
  trust.add("first")();
  expect(readFileSync(paths.bundle, "utf8")).toBe("image\nfirst\n");
  trust.add("second")();
  expect(readFileSync(paths.bundle, "utf8")).toBe("image\nsecond\n");
  expect(readFileSync(paths.source, "utf8")).toBe("second\n");
  expect(statSync(paths.bundle).mode & 0o777).toBe(0o644);
});

it("refuses in an image without a bundle", () => {
  expect(() => new Trust(paths).add("first")).toThrow(TrustError);
});
