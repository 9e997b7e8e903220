import { randomBytes } from "node:crypto";
import { Secret } from "@skerry/base";
import fc from "fast-check";
import { expect, it } from "vitest";
import { newEncryptionKey, parseEncryptionKeys, SecretBox } from "./secret-box.ts";

const keys = (count: number) => parseEncryptionKeys(Array.from({ length: count }, newEncryptionKey).join(","), "keys");
const ABOUT = ["team", "id", "1"];

it("opens what it sealed, whatever the value", () => {
  const box = new SecretBox(keys(1));
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), (text) => {
      const sealed = box.seal(new Secret(text), ABOUT);
      expect(box.open(sealed, ABOUT).reveal()).toBe(text);
      if (text.length > 3) expect(sealed.sealed).not.toContain(text);
    }),
  );
});

it("seals the same value differently each time", () => {
  const box = new SecretBox(keys(1));
  const all = Array.from({ length: 20 }, () => box.seal(new Secret("x"), ABOUT).sealed);
  expect(new Set(all).size).toBe(20);
});

it("opens nothing that belongs to something else, or was changed", () => {
  const box = new SecretBox(keys(1));
  const sealed = box.seal(new Secret("value"), ABOUT);
  for (const about of [["other", "id", "1"], ["team", "other", "1"], ["team", "id", "2"], ["teamid", "1"], []]) {
    expect(() => box.open(sealed, about)).toThrow("belongs to something else");
  }
  for (let at = 3; at < sealed.sealed.length; at++) {
    const replaced = sealed.sealed[at] === "A" ? "B" : "A";
    const changed = sealed.sealed.slice(0, at) + replaced + sealed.sealed.slice(at + 1);
    // The last characters may encode bits that are not part of the bytes.
    const opened = (() => {
      try {
        return box.open({ ...sealed, sealed: changed }, ABOUT).reveal();
      } catch {
        return undefined;
      }
    })();
    if (opened !== undefined) expect([at >= sealed.sealed.length - 1, opened]).toEqual([true, "value"]);
  }
  for (const damaged of ["", "v1", "v1..", "v2.a.b", `${sealed.sealed.slice(0, 10)}.`]) {
    expect(() => box.open({ ...sealed, sealed: damaged }, ABOUT)).toThrow(/damaged/);
  }
});

it("encrypts with the first key, and decrypts with all of them", () => {
  const [first, second] = keys(2);
  if (!first || !second) throw new Error("there are two keys");
  const old = new SecretBox([first]);
  const sealed = old.seal(new Secret("value"), ABOUT);
  const rotated = new SecretBox([second, first]);
  expect(rotated.open(sealed, ABOUT).reveal()).toBe("value");
  expect(rotated.has(sealed.keyId)).toBe(true);
  const again = rotated.seal(new Secret("value"), ABOUT);
  expect(again.keyId).not.toBe(sealed.keyId);
  expect(() => old.open(again, ABOUT)).toThrow(`the key ${again.keyId}`);
  expect(() => new SecretBox([])).toThrow("no encryption key");
});

it("reads keys in base64 and hex, and never shows one", () => {
  const [one, two] = [randomBytes(32), randomBytes(32)];
  const read = parseEncryptionKeys(`# the new one\n${one.toString("base64")}\n\n ${two.toString("hex")} \n`, "keys");
  expect(read.map((key) => key.reveal())).toEqual([one, two]);
  expect(JSON.stringify(read)).toBe('["[redacted]","[redacted]"]');
  for (const wrong of [
    "",
    "#x",
    "short",
    "z".repeat(64),
    randomBytes(31).toString("base64"),
    randomBytes(33).toString("base64"),
    `${newEncryptionKey()},x`,
  ]) {
    const failure = (() => {
      try {
        return parseEncryptionKeys(wrong, "KEYS").length;
      } catch (error) {
        return error as Error;
      }
    })();
    expect(failure).toMatchObject({
      code: "config_invalid",
      message: expect.stringMatching(/^KEYS(: key \d+ must be 32 bytes| has no key)/),
    });
    if (wrong.length > 5) expect(String(failure)).not.toContain(wrong);
  }
});
