import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { RecordParser } from "@skerry/base/records";
import { describe, expect, test } from "vitest";
import { readClusterRecord } from "./cluster-record.ts";
import { IMAGE_KIND, parseImageRecord } from "./image-record.ts";
import { readNetworkPool } from "./network-record.ts";
import { parseSandboxRecord, SANDBOX_KIND } from "./sandbox-record.ts";

/** `<kind>-<version>-<runtime>.json`: a record as that version wrote it. A released version's file never changes. */
const FIXTURES = join(import.meta.dirname, "fixtures");
const textOf = (name: string) => readFileSync(join(FIXTURES, `${name}.json`), "utf8");
const KINDS = [
  { kind: SANDBOX_KIND, parse: parseSandboxRecord as RecordParser<object>, oldest: 2 },
  { kind: IMAGE_KIND, parse: parseImageRecord as RecordParser<object>, oldest: 1 },
];

describe.each(KINDS)("records of the kind $kind.name", ({ kind, parse, oldest }) => {
  const versions = Array.from({ length: kind.version - oldest + 1 }, (_, index) => oldest + index);

  test("have a fixture of every version that can be read", () => {
    const names = readdirSync(FIXTURES).filter((name) => name.startsWith(`${kind.name}-`));
    for (const version of versions) expect(names).toContain(`${kind.name}-${version}-gvisor.json`);
  });

  test.each(["gvisor", "runc"])("on %s are the same whichever version wrote them", (runtime) => {
    const current = JSON.parse(textOf(`${kind.name}-${kind.version}-${runtime}`));
    for (const version of versions) {
      expect(parse(textOf(`${kind.name}-${version}-${runtime}`), "a file"), String(version)).toEqual({ record: current });
    }
  });

  test("are damaged without any of the properties that every one has", () => {
    const { version, ...record } = JSON.parse(textOf(`${kind.name}-${kind.version}-runc`));
    const optional = new Set(["imageId", "isRestored", "process", "binary"]);
    for (const name of Object.keys(record).filter((name) => !(kind === SANDBOX_KIND && optional.has(name)))) {
      const { [name]: _missing, ...rest } = record;
      expect(parse(JSON.stringify({ version, ...rest }), "a file"), name).toBe("damaged");
    }
  });
});

test("a sandbox of version 1, which had no area, keeps the node from starting", () => {
  expect(() => parseSandboxRecord(textOf("sandbox-1-gvisor"), "sandbox.json")).toThrow(/version 1, written by an earlier version/);
});

test("the records of the cluster and the network had no version at first, and those of a later version are refused", () => {
  const dir = mkdtempSync(join(tmpdir(), "records-"));
  const file = join(dir, "record.json");
  writeFileSync(file, JSON.stringify({ id: "a", refused: { id: "b", at: "2026-11-22T03:52:34Z" } }));
  expect(readClusterRecord(file)).toEqual({ version: 1, id: "a", refused: { id: "b", at: "2026-11-22T03:52:34Z" } });
  writeFileSync(file, JSON.stringify({ pool: "10.76.0.0/16" }));
  expect(readNetworkPool(file)).toBe("10.76.0.0/16");
  // The earlier file was not replaced as a whole: a loss of power could leave a part of it.
  writeFileSync(file, '{"pool"');
  expect(readNetworkPool(file)).toBeUndefined();
  expect(() => readClusterRecord(file)).toThrow(/is damaged/);
  writeFileSync(file, JSON.stringify({ version: 2, id: "a", pool: "10.76.0.0/16" }));
  for (const read of [readClusterRecord, readNetworkPool]) expect(() => read(file)).toThrow(/a later version of Skerry/);
  rmSync(dir, { recursive: true });
});

test("an image names nothing of its host outside of `local`", () => {
  for (const runtime of ["gvisor", "runc"]) {
    const { local: _local, ...image } = JSON.parse(textOf(`image-${IMAGE_KIND.version}-${runtime}`));
    expect(JSON.stringify(image)).not.toMatch(/\/var\/lib\/skerry|\/run\/netns|cgroupsPath":"[^"]|sk8c4c|skerry-8c4c/);
  }
});
