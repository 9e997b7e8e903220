import { createHash } from "node:crypto";
import { Secret } from "@skerry/base";
import { describe, expect, it } from "vitest";
import { API_KEY_PREFIX, credentialOf, makeApiKey, parseCredential } from "./credential.ts";

describe("parseCredential", () => {
  it("hashes the bytes that the hex part stands for", () => {
    const hash = createHash("sha256")
      .update(Buffer.from([0xab, 0x01]))
      .digest("hex");
    expect(parseCredential("e2b_ab01", "e2b_")).toEqual({ kind: "hash", hash });
    expect(parseCredential("e2b_AB01", "e2b_")).toEqual({ kind: "hash", hash });
  });

  it.each([
    ["", "malformed"],
    ["sk_e2b_ab", "malformed"],
    ["E2B_ab", "malformed"],
    ["e2b_", "not-hex"],
    ["e2b_abc", "not-hex"],
    ["e2b_zz", "not-hex"],
    ["e2b_ab ", "not-hex"],
  ])("calls %j %s", (text, kind) => {
    expect(parseCredential(text, "e2b_").kind).toBe(kind);
  });
});

describe("credentialOf", () => {
  it("keeps a hash and what may be shown, and never the key", () => {
    const key = makeApiKey();
    expect(key.reveal()).toMatch(/^e2b_[0-9a-f]{40}$/);
    const kept = credentialOf(key, { prefix: API_KEY_PREFIX, name: "n", now: 1 });
    expect(JSON.stringify(kept)).not.toContain(key.reveal().slice(4, 20));
    expect(kept.mask).toMatchObject({ length: 40, suffix: key.reveal().slice(-4) });
  });

  it("refuses what clients would not send", () => {
    expect(() => credentialOf(new Secret("hello"), { prefix: API_KEY_PREFIX, name: "n", now: 1 })).toThrow();
  });
});
