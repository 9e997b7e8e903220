import { request } from "node:http";
import { runtimesFor } from "@skerry/testkit/depth";
import { type SharedPlatform, sharedPlatform } from "@skerry/testkit/run-services";
import { Sandbox } from "e2b";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { clientOf } from "./client.ts";

interface Answer {
  readonly status: number;
  readonly body: string;
}

describe.each(runtimesFor("signed file URLs"))("signed file URLs of the npm SDK on %s", (runtime) => {
  let platform: SharedPlatform;
  let sandbox: Sandbox;
  beforeAll(async () => {
    platform = await sharedPlatform(runtime);
    // Without a common URL for all sandboxes, the SDK uses the sandbox's own host name in signed URLs.
    const { sandboxUrl: _none, ...client } = clientOf(platform);
    const { sandboxId } = await Sandbox.create(clientOf(platform));
    sandbox = await Sandbox.connect(sandboxId, client);
    const direct = await Sandbox.connect(sandboxId, clientOf(platform));
    await direct.files.write("/home/user/with space/ü.txt", "signed");
  });
  afterAll(() => platform?.[Symbol.asyncDispose]());

  const PATH = "/home/user/with space/ü.txt";

  /** A request as from a browser, behind a front end that ends TLS: the edge gets the host name in the Host header. */
  function open(link: string, form?: { name: string; content: string }): Promise<Answer> {
    const url = new URL(link);
    expect(url.host).toBe(`49983-${sandbox.sandboxId}.${platform.domain}`);
    const boundary = "a-boundary";
    const body =
      form &&
      `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="${form.name}"\r\n\r\n${form.content}\r\n--${boundary}--\r\n`;
    const headers = { Host: url.host, ...(form && { "Content-Type": `multipart/form-data; boundary=${boundary}` }) };
    return new Promise((resolve, reject) => {
      request(platform.edgeUrl + url.pathname + url.search, { method: form ? "POST" : "GET", headers }, (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (chunk: string) => {
          text += chunk;
        });
        response.once("end", () => resolve({ status: response.statusCode ?? 0, body: text.trim() }));
      })
        .once("error", reject)
        .end(body);
    });
  }

  const refused = (message: string): Answer => ({ status: 401, body: JSON.stringify({ code: 401, message }) });

  it("read and write a file, with and without an expiration", async () => {
    for (const useSignatureExpiration of [undefined, 60]) {
      const options = useSignatureExpiration === undefined ? {} : { useSignatureExpiration };
      expect(await open(await sandbox.downloadUrl(PATH, options))).toEqual({ status: 200, body: "signed" });
      expect(await open(await sandbox.downloadUrl(PATH, { ...options, user: "root" }))).toEqual({ status: 200, body: "signed" });
      const written = await open(await sandbox.uploadUrl("up.txt", options), { name: "other.txt", content: "sent" });
      expect(written).toEqual({ status: 200, body: JSON.stringify([{ name: "up.txt", path: "/home/user/up.txt", type: "file" }]) });
      expect(await open(await sandbox.downloadUrl("up.txt"))).toEqual({ status: 200, body: "sent" });
      const named = await open(await sandbox.uploadUrl(undefined, options), { name: "named/file.txt", content: "by name" });
      expect(JSON.parse(named.body)).toEqual([{ name: "file.txt", path: "/home/user/named/file.txt", type: "file" }]);
    }
  });

  it("expire at their time", async () => {
    expect(await open(await sandbox.downloadUrl(PATH, { useSignatureExpiration: -10 }))).toEqual(refused("signature is already expired"));
    const upload = await sandbox.uploadUrl("late.txt", { useSignatureExpiration: -10 });
    expect(await open(upload, { name: "late.txt", content: "" })).toEqual(refused("signature is already expired"));
  });

  it("are valid for one path, one direction and one sandbox", async () => {
    const link = await sandbox.downloadUrl(PATH, { useSignatureExpiration: 60 });
    const changed = (name: string, value: string | undefined) => {
      const url = new URL(link);
      if (value === undefined) url.searchParams.delete(name);
      else url.searchParams.set(name, value);
      return url.toString();
    };
    for (const other of [
      changed("path", "/etc/shadow"),
      changed("username", "root"),
      changed("signature_expiration", String(2 ** 32)),
      changed("signature_expiration", undefined),
      changed("signature", "v1_"),
    ]) {
      expect(await open(other)).toEqual(refused("invalid signature"));
    }
    expect(await open(link, { name: "x", content: "x" })).toEqual(refused("invalid signature"));
    expect(await open(changed("signature", undefined))).toEqual(refused("missing signature query parameter"));
    const { sandboxUrl: _none, ...client } = clientOf(platform);
    const other = await Sandbox.create(clientOf(platform));
    const theirs = await (await Sandbox.connect(other.sandboxId, client)).downloadUrl("/etc/hostname");
    expect(await open(theirs.replace(other.sandboxId, sandbox.sandboxId))).toEqual(refused("invalid signature"));
    await other.kill();
  });

  it("report missing signatures with the texts that clients compare", async () => {
    expect(await open(await sandbox.downloadUrl("nope.txt"))).toEqual({
      status: 404,
      body: JSON.stringify({ code: 404, message: "path '/home/user/nope.txt' does not exist" }),
    });
  });
});
