// Signed file URLs with the settings of the quick start: with E2B_SANDBOX_URL, nothing in the URL names the sandbox.

import { runtimesFor } from "@skerry/testkit/depth";
import { type SharedPlatform, sharedPlatform } from "@skerry/testkit/run-services";
import { Sandbox } from "e2b";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { clientOf } from "./client.ts";

const PATH = "/home/user/with space/ü.txt";
const INVALID = { status: 401, body: JSON.stringify({ code: 401, message: "invalid signature" }) };
const EXPIRED = { status: 401, body: JSON.stringify({ code: 401, message: "signature is already expired" }) };

interface Answer {
  readonly status: number;
  readonly body: string;
}

async function read(response: Promise<Response>): Promise<Answer> {
  const { status, text } = await response.then(async (answer) => ({ status: answer.status, text: await answer.text() }));
  return { status, body: text.trim() };
}

const download = (url: string): Promise<Answer> => read(fetch(url));

function upload(url: string, content: string | Uint8Array<ArrayBuffer>, name = "x"): Promise<Answer> {
  const form = new FormData();
  form.append("file", new Blob([content]), name);
  return read(fetch(url, { method: "POST", body: form }));
}

function changed(link: string, name: string, value: string | undefined): string {
  const url = new URL(link);
  if (value === undefined) url.searchParams.delete(name);
  else url.searchParams.set(name, value);
  return url.toString();
}

describe.each(runtimesFor("signed file URLs without a sandbox's name"))("signed file URLs without a sandbox's name on %s", (runtime) => {
  let platform: SharedPlatform;
  let sandbox: Sandbox;
  let other: Sandbox;
  beforeAll(async () => {
    platform = await sharedPlatform(runtime);
    [sandbox, other] = await Promise.all([Sandbox.create(clientOf(platform)), Sandbox.create(clientOf(platform))]);
    await sandbox.files.write(PATH, "signed");
    await other.files.write(PATH, "other");
  });
  afterAll(() => platform?.[Symbol.asyncDispose]());

  it("read and write files of their own sandbox, with and without an expiration", async () => {
    for (const useSignatureExpiration of [undefined, 60]) {
      const options = useSignatureExpiration === undefined ? {} : { useSignatureExpiration };
      const link = await sandbox.downloadUrl(PATH, options);
      expect(link.startsWith(`${platform.edgeUrl}/files?`)).toBe(true);
      expect(await download(link)).toEqual({ status: 200, body: "signed" });
      expect(await download(await sandbox.downloadUrl(PATH, { ...options, user: "root" }))).toEqual({ status: 200, body: "signed" });
      expect(await download(await other.downloadUrl(PATH, options))).toEqual({ status: 200, body: "other" });
      const written = await upload(await sandbox.uploadUrl("up.txt", options), "sent");
      expect(written).toEqual({ status: 200, body: JSON.stringify([{ name: "up.txt", path: "/home/user/up.txt", type: "file" }]) });
      expect(await sandbox.files.read("up.txt")).toBe("sent");
      const named = await upload(await sandbox.uploadUrl(undefined, options), "by name", "named.txt");
      expect(JSON.parse(named.body)).toEqual([{ name: "named.txt", path: "/home/user/named.txt", type: "file" }]);
    }
    expect(await other.files.exists("up.txt")).toBe(false);
  });

  it("upload and download large files", async () => {
    const bytes = new Uint8Array(8_000_000).map((_, index) => index * 31);
    expect((await upload(await sandbox.uploadUrl("large.bin"), bytes)).status).toBe(200);
    const answer = await fetch(await sandbox.downloadUrl("large.bin"));
    expect(Buffer.compare(new Uint8Array(await answer.arrayBuffer()), bytes)).toBe(0);
  });

  it("expire at their time", async () => {
    const options = { useSignatureExpiration: -10 };
    expect(await download(await sandbox.downloadUrl(PATH, options))).toEqual(EXPIRED);
    expect(await upload(await sandbox.uploadUrl("late.txt", options), "x")).toEqual(EXPIRED);
    expect(await sandbox.files.exists("late.txt")).toBe(false);
  });

  it("are valid for one path, one direction and one user", async () => {
    const link = await sandbox.downloadUrl(PATH, { useSignatureExpiration: 60 });
    for (const tampered of [
      changed(link, "path", "/etc/shadow"),
      changed(link, "username", "root"),
      changed(link, "signature_expiration", String(2 ** 32)),
      changed(link, "signature_expiration", undefined),
      changed(link, "signature", "v1_"),
      changed(link, "signature", `v1_${"A".repeat(43)}`),
    ]) {
      expect(await download(tampered)).toEqual(INVALID);
    }
    expect(await upload(link, "x")).toEqual(INVALID);
    expect(await download(await sandbox.uploadUrl("up.txt"))).toEqual(INVALID);
    // Again, once the edge knows the sandbox of the signature.
    expect((await download(link)).status).toBe(200);
    expect(await download(changed(link, "path", "/etc/shadow"))).toEqual(INVALID);
    expect((await download(changed(link, "signature", undefined))).status).toBe(400);
  });

  it("of paused and killed sandboxes look like URLs with a wrong signature", async () => {
    const doomed = await Sandbox.create(clientOf(platform));
    await doomed.files.write("a.txt", "there");
    const link = await doomed.downloadUrl("a.txt");
    const late = await doomed.downloadUrl("a.txt", { useSignatureExpiration: -10 });
    expect(await download(link)).toEqual({ status: 200, body: "there" });
    await doomed.pause();
    for (const url of [link, late, await doomed.downloadUrl("b.txt")]) expect(await download(url)).toEqual(INVALID);
    await doomed.connect();
    expect(await download(link)).toEqual({ status: 200, body: "there" });
    await doomed.kill();
    for (const url of [link, late]) expect(await download(url)).toEqual(INVALID);
  });
});
