import { X509Certificate } from "node:crypto";
import { Secret } from "@skerry/base";
import { expect, it } from "vitest";
import { Authority } from "./authority.ts";

it("issues certificates for single names, which its own certificate verifies", async () => {
  const authority = await Authority.fromSeed(new Secret("seed"));
  const root = new X509Certificate(authority.certificate);
  expect([root.ca, root.verify(root.publicKey)]).toEqual([true, true]);
  const { certificate, key } = await authority.leafFor("api.example.com");
  const leaf = new X509Certificate(certificate);
  expect([leaf.ca, leaf.checkIssued(root), leaf.verify(root.publicKey)]).toEqual([false, true, true]);
  expect(leaf.subjectAltName).toBe("DNS:api.example.com");
  expect([leaf.checkHost("api.example.com"), leaf.checkHost("b.example.com")]).toEqual(["api.example.com", undefined]);
  expect(authority.certificate).not.toContain("PRIVATE");
  expect(await authority.leafFor("api.example.com")).toEqual({ certificate, key });
});

it("is the same for the same seed, also in another process, and another one for another seed", async () => {
  const [one, again, other] = await Promise.all(["a", "a", "b"].map((seed) => Authority.fromSeed(new Secret(seed))));
  const root = new X509Certificate(one?.certificate ?? "");
  const leafOf = async (authority: Authority | undefined) => new X509Certificate((await authority?.leafFor("x.test"))?.certificate ?? "");
  expect((await leafOf(again)).verify(root.publicKey)).toBe(true);
  expect((await leafOf(again)).checkIssued(root)).toBe(true);
  expect((await leafOf(other)).verify(root.publicKey)).toBe(false);
  expect(new X509Certificate(other?.certificate ?? "").subject).not.toBe(root.subject);
});

it("makes a bounded number of certificates at once", async () => {
  const authority = await Authority.fromSeed(new Secret("seed"));
  const first = await authority.leafFor("first.test");
  const made = await Promise.allSettled(Array.from({ length: 500 }, (_, i) => authority.leafFor(`h${i}.test`)));
  expect(made.filter(({ status }) => status === "rejected").length).toBeGreaterThan(0);
  expect(await authority.leafFor("first.test")).toEqual(first);
});
