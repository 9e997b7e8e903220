import { createHash, createHmac } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { create } from "@bufbuild/protobuf";
import { registryCredentials } from "@skerry/builder";
import { type ImageSource, ImageSourceSchema } from "@skerry/wire/node";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";

const { signal } = new AbortController();
const image = (credentials: ImageSource["credentials"]) => create(ImageSourceSchema, { reference: "private/app", credentials });

it("a user and a password are taken as they are, the key of a service account by its own name", async () => {
  const settings = { pullDir: "/nowhere" };
  const basic = await registryCredentials(
    create(ImageSourceSchema, { credentials: { case: "basic", value: { username: "me", password: "a:b" } } }),
    { settings, signal },
  );
  expect([basic?.username, basic?.password.reveal()]).toEqual(["me", "a:b"]);
  const gcp = await registryCredentials(
    create(ImageSourceSchema, { credentials: { case: "gcp", value: { serviceAccountJson: '{"type": "service_account"}' } } }),
    { settings, signal },
  );
  expect([gcp?.username, gcp?.password.reveal()]).toEqual(["_json_key", '{"type": "service_account"}']);
  expect(await registryCredentials(image({ case: undefined }), { settings, signal })).toBeUndefined();
});

describe("the login of Amazon ECR", () => {
  const keys = { accessKeyId: "AKIDEXAMPLE", secretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", region: "eu-central-1" };
  let server: Server;
  let answer = { status: 200, body: "" };
  let asked: { headers: IncomingHttpHeaders; body: string } | undefined;
  beforeAll(async () => {
    server = createServer(async (request, response) => {
      let body = "";
      for await (const chunk of request) body += String(chunk);
      asked = { headers: request.headers, body };
      response.writeHead(answer.status, { "content-type": "application/x-amz-json-1.1" }).end(answer.body);
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
  });
  afterAll(() => void server.close());
  beforeEach(() => {
    asked = undefined;
  });

  const endpoint = () => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const login = (given: Partial<typeof keys> = {}, ecrEndpoint = endpoint()) =>
    registryCredentials(
      create(ImageSourceSchema, { reference: "private/app", credentials: { case: "aws", value: { ...keys, ...given } } }),
      { settings: { pullDir: "/nowhere", ecrEndpoint }, signal },
    );

  it("is a signed call, whose answer has the user and the password", async () => {
    const token = Buffer.from("AWS:a very long password").toString("base64");
    answer = { status: 200, body: JSON.stringify({ authorizationData: [{ authorizationToken: token, expiresAt: 1 }] }) };
    const credentials = await login();
    expect([credentials?.username, credentials?.password.reveal()]).toEqual(["AWS", "a very long password"]);
    const { headers = {}, body } = asked ?? {};
    expect([headers["x-amz-target"], body]).toEqual(["AmazonEC2ContainerRegistry_V20150921.GetAuthorizationToken", "{}"]);
    expect(headers.authorization).toBe(signatureOf(headers, keys));
    expect(JSON.stringify(headers)).not.toContain(keys.secretAccessKey);
  });

  it.each([
    [
      400,
      '{"__type":"UnrecognizedClientException","message":"The security token is invalid."}',
      /^access denied to 'private\/app': .*UnrecognizedClientException/,
    ],
    [400, '{"__type":"com.amazon#AccessDeniedException"}', /^access denied to 'private\/app': .*AccessDeniedException/],
    [503, "busy", /^failed to pull image 'private\/app': unable to retrieve image from registry: .*503/],
    [200, "<html>", /^failed to pull image 'private\/app'/],
    [200, '{"authorizationData":[]}', /^failed to pull image 'private\/app'/],
    [200, '{"authorizationData":[{"authorizationToken":"AAAA"}]}', /^failed to pull image 'private\/app'/],
  ])("tells why it failed: %i %s", async (status, body, message) => {
    answer = { status, body };
    await expect(login()).rejects.toMatchObject({ step: "base", message: expect.stringMatching(message) });
  });

  it("goes to no host that the region was made up for", async () => {
    const elsewhere = { step: "base", message: expect.stringMatching(/not a region/) };
    await expect(login({ region: "x.example/#" })).rejects.toMatchObject(elsewhere);
    expect(asked).toBeUndefined();
  });

  it("tells that nobody answers", async () => {
    await expect(login({}, "http://127.0.0.1:1")).rejects.toMatchObject({
      step: "base",
      message: expect.stringMatching(/can't be reached/),
    });
  });
});

/** Signature Version 4, as AWS describes it, for a POST of "{}" to "/". */
function signatureOf(headers: IncomingHttpHeaders, keys: { accessKeyId: string; secretAccessKey: string; region: string }): string {
  const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");
  const hmac = (key: string | Buffer, text: string) => createHmac("sha256", key).update(text).digest();
  const names = /SignedHeaders=([^,]+)/.exec(headers.authorization ?? "")?.[1] ?? "";
  expect(names.split(";")).toEqual(expect.arrayContaining(["host", "x-amz-date", "x-amz-target"]));
  const lines = names.split(";").map((name) => `${name}:${String(headers[name])}\n`);
  const canonical = ["POST", "/", "", lines.join(""), names, sha256("{}")].join("\n");
  const time = String(headers["x-amz-date"]);
  const scope = `${time.slice(0, 8)}/${keys.region}/ecr/aws4_request`;
  const key = ["aws4_request", "ecr", keys.region, time.slice(0, 8)].reduceRight<Buffer | string>(
    (previous, part) => hmac(previous, part),
    `AWS4${keys.secretAccessKey}`,
  );
  const signature = hmac(key, ["AWS4-HMAC-SHA256", time, scope, sha256(canonical)].join("\n")).toString("hex");
  return `AWS4-HMAC-SHA256 Credential=${keys.accessKeyId}/${scope}, SignedHeaders=${names}, Signature=${signature}`;
}
