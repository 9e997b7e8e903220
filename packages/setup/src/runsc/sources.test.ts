import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { parseModuleProxies } from "./module-proxies.ts";
import { GVISOR_MODULE, GVISOR_VERSION } from "./pinned.ts";
import { findRunsc } from "./sources.ts";

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "runsc-"));
});
afterEach(() => rmSync(dir, { recursive: true }));

const sha512 = createHash("sha512").update("a binary").digest("hex");

test("a recorded binary is found by its digest", async () => {
  writeFileSync(join(dir, `runsc-${sha512.slice(0, 12)}`), "a binary");
  expect(await findRunsc(dir, sha512)).toMatchObject({ sha512, source: "data folder" });
});

test("a binary that is neither pinned nor recorded is not used", async () => {
  writeFileSync(join(dir, `runsc-${sha512.slice(0, 12)}`), "a binary");
  expect(await findRunsc(dir, undefined)).toBeUndefined();
});

test("a damaged binary counts as none", async () => {
  writeFileSync(join(dir, `runsc-${sha512.slice(0, 12)}`), "a binarx");
  expect(await findRunsc(dir, sha512)).toBeUndefined();
});

test("a missing folder has no binary", async () => {
  expect(await findRunsc(join(dir, "none"), sha512)).toBeUndefined();
});

test("module proxies are the servers in GOPROXY", () => {
  expect(parseModuleProxies("https://a.example/go/,direct")).toEqual(["https://a.example/go"]);
  expect(parseModuleProxies("https://a.example|http://b.example,off")).toEqual(["https://a.example", "http://b.example"]);
  expect(parseModuleProxies("off")).toEqual([]);
});

test("gVisor is built from the version that is pinned", () => {
  const module = readFileSync(join(import.meta.dirname, "module/go.mod"), "utf8");
  expect(module).toContain(`\n\t${GVISOR_MODULE} ${GVISOR_VERSION}\n`);
});
