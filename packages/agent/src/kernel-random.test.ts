import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { kernelRandomBytes, kernelRandomName, kernelRandomUuid } from "./kernel-random.ts";

it("gives as many bytes as were asked for, others each time", () => {
  expect(kernelRandomBytes(0)).toHaveLength(0);
  expect(kernelRandomBytes(100_000)).toHaveLength(100_000);
  expect(kernelRandomBytes(32)).not.toEqual(kernelRandomBytes(32));
});

it("makes UUIDs of version 4", () => {
  const made = Array.from({ length: 200 }, kernelRandomUuid);
  expect(new Set(made).size).toBe(made.length);
  for (const uuid of made) expect(uuid).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
});

it("uses every character of the alphabet and no other", () => {
  const alphabet = "abcdefghijklmnopqrstuvwxyz0123456789";
  const name = kernelRandomName(5_000, alphabet);
  expect(name).toHaveLength(5_000);
  expect([...new Set(name)].sort().join("")).toBe([...alphabet].sort().join(""));
});

it("is where all of the agent's random numbers come from", () => {
  const inMemory = /randomUUID|randomBytes|randomInt|randomFill|getRandomValues|Math\.random/;
  const sources = readdirSync(import.meta.dirname, { recursive: true, encoding: "utf8" }).filter((path) => /(?<!\.test)\.ts$/.test(path));
  expect(sources.length).toBeGreaterThan(80);
  expect(sources.filter((path) => inMemory.test(readFileSync(join(import.meta.dirname, path), "utf8")))).toEqual([]);
});
