import { expect, it } from "vitest";
import { isSameMounts, isVolumeId, parseVolumeMounts } from "./volume-mount.ts";

const [a, b] = ["00000000-0000-4000-8000-00000000000a", "00000000-0000-4000-8000-00000000000b"] as const;

it("sorts mounts by their paths, so that their order does not matter", () => {
  const mounts = parseVolumeMounts([
    { volumeId: b, path: "/mnt/b" },
    { volumeId: a, path: "/data" },
  ]);
  expect(mounts.map(({ path }) => path)).toEqual(["/data", "/mnt/b"]);
  expect(isSameMounts(mounts, parseVolumeMounts(mounts.toReversed()))).toBe(true);
  expect(isSameMounts(mounts, mounts.slice(1))).toBe(false);
  expect(isSameMounts(undefined, [])).toBe(true);
  expect(isSameMounts(mounts, [{ volumeId: b, path: "/data" }, ...mounts.slice(1)])).toBe(false);
});

it.each([
  "",
  "/",
  "data",
  "/data/",
  "/a//b",
  "/a/./b",
  "/a/..",
  "/a\0b",
  "/proc",
  "/proc/self",
  "/sys/x",
  "/dev",
  "/.skerry/bin",
  `/${"x".repeat(1024)}`,
])("refuses the mount point %j", (path) => {
  expect(() => parseVolumeMounts([{ volumeId: a, path }])).toThrow(/can't be mounted at/);
});

it.each([
  ["/data", "/data"],
  ["/data", "/data/below"],
  ["/data/a/b", "/data"],
])("refuses mounts at %s and %s: one would lie in the other volume, which others change", (first, second) => {
  const mounts = [first, second].map((path, index) => ({ volumeId: index === 0 ? a : b, path }));
  expect(() => parseVolumeMounts(mounts)).toThrow(/another one is mounted there/);
});

it("takes neighbours with the same beginning, and names that only look reserved", () => {
  const paths = ["/data", "/data-2", "/process", "/devices", "/.skerry-2"];
  expect(
    parseVolumeMounts(paths.map((path) => ({ volumeId: a, path })))
      .map(({ path }) => path)
      .sort(),
  ).toEqual(paths.sort());
});

it.each(["", "..", a.toUpperCase(), `${a}/..`, `${a}\n`, "new-00"])("does not take %j for the id of a volume", (id) => {
  expect(isVolumeId(id)).toBe(false);
});
