// How a registry is reached, and registries that do not do as they should.

import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand, Secret } from "@skerry/base";
import { describeOciImage, type PullOptions, parseOciImageReference, pullOciImage, resolveOciImage } from "@skerry/layers";
import { REGISTRY_USER, startRegistry, type TestRegistry, tarArchive } from "@skerry/testkit";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const dir = mkdtempSync(join(tmpdir(), "skerry-registries-"));
let open: TestRegistry;
let guarded: TestRegistry;
const file = (name: string) => join(dir, name);
beforeAll(async () => {
  const openssl = (...args: string[]) => runCommand("openssl", args);
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
  await openssl("req", "-x509", ...key, "-keyout", file("ca.key"), "-out", file("ca.crt"), "-subj", "/CN=the company", "-days", "2");
  await openssl("req", ...key, "-keyout", file("server.key"), "-out", file("server.csr"), "-subj", "/CN=registry");
  writeFileSync(file("server.ext"), "subjectAltName = IP:127.0.0.1\n");
  const signed = ["-CA", file("ca.crt"), "-CAkey", file("ca.key"), "-CAcreateserial", "-extfile", file("server.ext"), "-days", "2"];
  await openssl("x509", "-req", "-in", file("server.csr"), "-out", file("server.crt"), ...signed);
  [open, guarded] = await Promise.all([
    startRegistry(),
    startRegistry({ asksForUser: true, tls: { certificate: file("server.crt"), key: file("server.key") } }),
  ]);
});
afterAll(async () => {
  await open?.stop();
  await guarded?.stop();
  rmSync(dir, { recursive: true, force: true });
});

const layer = tarArchive([{ path: "hello", content: "world" }]);
let count = 0;
async function pull(reference: string, given: Partial<PullOptions> = {}) {
  const work = file(`pull${++count}`);
  mkdirSync(work, { mode: 0o700 });
  const options = { dir: work, ...given };
  return await pullOciImage(await describeOciImage(await resolveOciImage(parseOciImageReference(reference), options), options), options);
}

describe("the operator's settings", () => {
  // skopeo verifies certificates of this name, and connects to the registry of this test.
  const NAME = "registry.example/private";
  const settingsDir = (files: Readonly<Record<string, string>>) => {
    const configDir = file(`registries${++count}`);
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(join(configDir, name, ".."), { recursive: true });
      writeFileSync(join(configDir, name), text);
    }
    return configDir;
  };
  const location = () => `[[registry]]\nprefix = "${NAME}"\nlocation = "${guarded.host}/private"\n`;
  const { username, password } = REGISTRY_USER;
  const credentials = { username, password: new Secret(password) };
  const authJson = (host: string) =>
    JSON.stringify({ auths: { [host]: { auth: Buffer.from(`${username}:${password}`).toString("base64") } } });
  beforeAll(async () => {
    await guarded.push("private/app:1", { layers: [layer] });
    await open.push("library/hello:1", { layers: [layer] });
  });

  it("name authorities and places, and no place gets what was given for another registry", async () => {
    const files = { "registries.conf": location(), "auth.json": authJson(guarded.host) };
    const untrusted = settingsDir(files);
    await expect(pull(`${NAME}/app:1`, { registries: { configDir: untrusted } })).rejects.toMatchObject({ code: "registry_untrusted" });
    const trusted = settingsDir({ ...files, [`certs.d/${guarded.host}/ca.crt`]: readFileSync(file("ca.crt"), "utf8") });
    expect((await pull(`${NAME}/app:1`, { registries: { configDir: trusted } })).layers).toHaveLength(1);
    const given = pull(`${NAME}/app:1`, { credentials, registries: { configDir: trusted } });
    await expect(given).rejects.toMatchObject({ code: "oci_image_access_denied" });
    // As with SKERRY_CA_FILE.
    const env = new Secret({ SSL_CERT_FILE: file("ca.crt") });
    await pull(`${NAME}/app:1`, { registries: { configDir: untrusted, env } });
  });

  it("give credentials to builds that bring none, and the host's own are not used", async () => {
    const home = file("home");
    mkdirSync(join(home, ".docker"), { recursive: true });
    writeFileSync(join(home, ".docker/config.json"), authJson(guarded.host));
    const env = new Secret({ HOME: home, SSL_CERT_FILE: file("ca.crt"), REGISTRY_AUTH_FILE: join(home, ".docker/config.json") });
    const denied = { code: "oci_image_access_denied" };
    const reference = `${guarded.host}/private/app:1`;
    await expect(pull(reference, { registries: { env } })).rejects.toMatchObject(denied);
    await pull(reference, { registries: { env, hostCredentials: true } });
    await pull(reference, { registries: { env, configDir: settingsDir({ "auth.json": authJson(guarded.host) }) } });
  });

  it("name a mirror of Docker Hub", async () => {
    const image = await pull("hello:1", { registries: { mirror: open.host } });
    expect(image.reference).toBe("docker.io/library/hello:1");
  });

  it("block a registry", async () => {
    const configDir = settingsDir({ "registries.conf": `[[registry]]\nlocation = "${open.host}"\nblocked = true\n` });
    await expect(pull(`${open.host}/library/hello:1`, { registries: { configDir } })).rejects.toMatchObject({ code: "registry_blocked" });
  });
});

describe("a registry that does something else with a layer", () => {
  let server: Server;
  let misbehave: (response: ServerResponse) => void;
  const size = 200_000;
  beforeAll(async () => {
    const content = Buffer.from(Array.from({ length: size }, (_, index) => (index * 7919) % 251));
    await open.push("odd:1", { layers: [tarArchive([{ path: "content", content }])] });
    const manifest = (await (
      await fetch(`http://${open.host}/v2/odd/manifests/1`, { headers: { accept: "application/vnd.oci.image.manifest.v1+json" } })
    ).json()) as { layers: [{ digest: string }] };
    server = createServer(async (request, response) => {
      if (request.url?.includes(manifest.layers[0].digest)) return misbehave(response);
      const answer = await fetch(`http://${open.host}${request.url}`, { headers: { accept: request.headers.accept ?? "*/*" } });
      const headers = ["content-type", "docker-content-digest"].flatMap((name) => [[name, answer.headers.get(name) ?? ""] as const]);
      response.writeHead(answer.status, Object.fromEntries(headers)).end(Buffer.from(await answer.arrayBuffer()));
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
  });
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });
  const host = () => `127.0.0.1:${(server.address() as AddressInfo).port}`;

  it("stops sending it", async () => {
    misbehave = (response) => void response.writeHead(200, { "content-length": size }).write("the beginning");
    await expect(pull(`${host()}/odd:1`, { silenceMs: 1_000 })).rejects.toMatchObject({ code: "registry_unreachable" });
  });

  it("sends it without an end", async () => {
    misbehave = (response) => {
      response.writeHead(200);
      const chunk = Buffer.alloc(1024 * 1024);
      const more = () => {
        while (!response.destroyed && response.write(chunk)) {}
      };
      response.on("drain", more);
      more();
    };
    await expect(pull(`${host()}/odd:1`)).rejects.toMatchObject({ code: "oci_image_damaged" });
  });

  it("answers with an error", async () => {
    misbehave = (response) => void response.writeHead(502).end("bad gateway");
    const failure = { code: "registry_status", publicMessage: expect.stringContaining("registry returned status code 502") };
    await expect(pull(`${host()}/odd:1`)).rejects.toMatchObject(failure);
  });
});
