// The proxies that callers choose for their sandboxes: what is refused, and where the password is.

import { openSync } from "node:fs";
import { createLogger } from "@skerry/base";
import { TEST_CERTIFICATE } from "@skerry/testkit/test-certificate";
import { waitUntil } from "@skerry/testkit/wait-until";
import { sealedPasswordOf } from "@skerry/wire/node";
import { Value } from "typebox/value";
import { expect, it } from "vitest";
import { SandboxDetailSchema } from "../src/http/schemas.ts";
import { newEncryptionKey, parseEncryptionKeys } from "../src/index.ts";
import { OutgoingProxies, openPassword } from "../src/secrets/outgoing-proxies.ts";
import { SecretBox } from "../src/secrets/secret-box.ts";
import { describeOnEachDatabase } from "./each-database.ts";

const PASSWORD = "pr0xy-passw0rd";
const PROXY = { address: "proxy.example:1080", username: "user", password: PASSWORD };

describeOnEachDatabase("the proxy of a sandbox", { inSample: "sqlite", timing: { reconcileMs: 50 } }, (api) => {
  const put = (id: string, egressProxy: object | null) => api().call("PUT", `/sandboxes/${id}/network`, { body: { egressProxy } });
  const post = (path: string, body: object = {}) => api().call("POST", path, { body });
  const onNode = (id: string) => api().node.held.get(id)?.spec;
  const stored = async (id: string) => {
    const sandbox = await api().store.sandboxes.find(id);
    if (!sandbox) throw new Error("there is no such sandbox");
    return sandbox;
  };
  const shown = async (id: string) => {
    const { body, text } = await api().call("GET", `/sandboxes/${id}`);
    expect(Value.Errors(SandboxDetailSchema, body)).toEqual([]);
    expect(text).not.toContain(PASSWORD);
    return body.network?.egressProxy;
  };

  it("reaches the node with its password, which is nowhere else; forks have it, and a node that forgot it gets it again", async () => {
    const tls = { enabled: true, serverName: "tls.example", caCert: TEST_CERTIFICATE.cert };
    const id = await api().create({ network: { egressProxy: { ...PROXY, tls } } });
    expect(await shown(id)).toEqual({ address: PROXY.address, username: "user", tls: { enabled: true, serverName: "tls.example" } });
    expect(JSON.stringify(onNode(id)?.options)).not.toMatch(/pr0xy-passw0rd|"sealedPassword":"v1/);
    const given = () => onNode(id)?.secrets?.proxyPassword?.password;
    expect(given()).toBe(PASSWORD);
    expect(JSON.stringify(await stored(id))).not.toContain(PASSWORD);
    const forks = (await post(`/sandboxes/${id}/fork`)).body as { sandbox: { sandboxID: string } }[];
    expect(onNode(forks[0]?.sandbox.sandboxID ?? "")?.secrets?.proxyPassword?.password).toBe(PASSWORD);
    const held = api().node.held.get(id);
    if (held) held.spec = { ...held.spec, secrets: undefined };
    await waitUntil("the node has it again", () => given() === PASSWORD);
    const credential = onNode(id)?.options?.outgoingProxy?.credentialId;
    expect((await put(id, { ...PROXY, tls })).status).toBe(204);
    expect(onNode(id)?.options?.outgoingProxy?.credentialId).toBe(credential);
    expect((await put(id, { ...PROXY, password: "another" })).status).toBe(204);
    expect(onNode(id)?.options?.outgoingProxy?.credentialId).not.toBe(credential);
    expect(await shown(id)).toEqual({ address: PROXY.address, username: "user" });
    expect((await put(id, { address: "9.9.9.9:1", username: null, password: null, tls: { enabled: false } })).status).toBe(204);
    expect(await shown(id)).toEqual({ address: "9.9.9.9:1" });
    expect(onNode(id)?.secrets?.proxyPassword).toMatchObject({ password: "" });
    expect((await put(id, null)).status).toBe(204);
    expect(await shown(id)).toBeUndefined();
    expect(onNode(id)?.secrets).toBeUndefined();
  });

  it("is refused when it is malformed, or where no proxy may be", async () => {
    const id = await api().create({ network: { egressProxy: PROXY } });
    for (const wrong of [
      { address: "proxy.example" },
      { address: "proxy.example:0" },
      { address: "proxy.example:65536" },
      { address: "http://proxy.example:1080" },
      { address: "user:password@proxy.example:1080" },
      { address: "[2001:db8::1]:1080" },
      { address: "1.2.3.4.5:1080" },
      { address: "10.0.0.1:1080" },
      { address: "127.0.0.1:1080" },
      { address: "169.254.169.254:80" },
      { address: PROXY.address, username: "u".repeat(256) },
      { address: PROXY.address, username: "u", password: "é".repeat(128) },
      { address: PROXY.address, password: "p" },
      { address: PROXY.address, tls: { enabled: false, serverName: "a.example" } },
      { address: PROXY.address, tls: { enabled: true, serverName: "a b" } },
      { address: PROXY.address, tls: { enabled: true, caCert: "text" } },
      { address: PROXY.address, tls: { enabled: true, caCert: "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----" } },
    ]) {
      const refused = { status: 400, body: { message: expect.stringMatching(/^Invalid egress proxy config: /) } };
      expect(await put(id, wrong), JSON.stringify(wrong)).toMatchObject(refused);
      expect(await post("/v2/sandboxes", { templateID: "base", network: { egressProxy: wrong } })).toMatchObject(refused);
    }
    expect((await put(id, { address: 1 })).status).toBe(400);
    expect(await shown(id)).toEqual({ address: PROXY.address, username: "user" });
  });

  it("has its password encrypted with the first key after a change of keys", async () => {
    const id = await api().create({ network: { egressProxy: PROXY } });
    const keys = [...parseEncryptionKeys(newEncryptionKey(), "test"), ...api().encryptionKeys];
    const logger = createLogger({ name: "t", level: "error", fd: openSync("/dev/null", "w") });
    const box = new SecretBox(keys);
    const before = await stored(id);
    const proxies = new OutgoingProxies({ box, changes: api().store.sandboxes.changes, privateNetworks: [], logger });
    await proxies.reseal();
    const after = await stored(id);
    expect(sealedPasswordOf(after.options).keyId).toBe(box.keyId);
    expect(sealedPasswordOf(after.options)).not.toEqual(sealedPasswordOf(before.options));
    expect(openPassword(new SecretBox(keys.slice(0, 1)), after)?.reveal()).toBe(PASSWORD);
    // It belongs to its team.
    expect(() => openPassword(box, { ...after, teamId: "another" })).toThrow("belongs to something else");
    await proxies.reseal();
    expect((await stored(id)).options).toEqual(after.options);
  });
});
