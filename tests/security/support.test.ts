// The archive of `./skerry support` contains what a bug report needs, and no secret: every kind is planted, also in the log, and searched for.

import { randomBytes } from "node:crypto";
import { appendFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand } from "@skerry/base";
import { startPlatform } from "@skerry/testkit";
import { SkerryCommand } from "@skerry/testkit/skerry-command";
import { expect, it } from "vitest";

const random = () => randomBytes(12).toString("hex");

it("contains what a bug report needs, and no secret", async () => {
  const folder = mkdtempSync(join(tmpdir(), "support-"));
  const planted = { proxy: `proxy-${random()}`, registry: `registry-${random()}`, encryption: randomBytes(32).toString("base64") };
  const registries = join(folder, "registries");
  mkdirSync(registries);
  const auth = Buffer.from(`robot:${planted.registry}`).toString("base64");
  writeFileSync(join(registries, "auth.json"), JSON.stringify({ auths: { "registry.example": { auth } } }));
  await using platform = await startPlatform({
    runtime: "runc",
    env: {
      SKERRY_HTTPS_PROXY: `http://operator:${planted.proxy}@192.0.2.1:9`,
      SKERRY_ENCRYPTION_KEYS: planted.encryption,
      SKERRY_REGISTRIES_DIR: registries,
    },
  });
  const call = async (method: string, path: string, options: { body?: object; headers?: Record<string, string> } = {}) => {
    const { body, headers = { "X-API-Key": platform.secrets.apiKey } } = options;
    const init = { method, headers: { ...headers, "Content-Type": "application/json" }, ...(body && { body: JSON.stringify(body) }) };
    const response = await fetch(platform.apiUrl + path, init);
    expect(response.ok, `${path} ${response.status}`).toBe(true);
    return (await response.json()) as Record<string, string>;
  };
  const vault = `vault-${random()}`;
  await call("POST", "/secrets", { body: { name: "rule", value: vault } });
  const webhook = await call("POST", "/webhooks", { body: { url: "https://receiver.example/", name: "w", enabled: false } });
  const bearer = { Authorization: `Bearer ${platform.secrets.accessToken}` };
  const key = await call("POST", "/api-keys", { headers: bearer, body: { name: "k" } });
  const token = await call("POST", "/access-tokens", { headers: bearer, body: { name: "t" } });
  const sandbox = await call("POST", "/v2/sandboxes", { body: { templateID: "base", timeout: 600 } });
  const { apiKey, accessToken, adminToken, internalSecret, tokenSeed } = platform.secrets;
  const database = `postgres://skerry:db-${random()}@db.example:5432/skerry`;
  const inLog = [apiKey, accessToken, adminToken, internalSecret, tokenSeed, planted.proxy, planted.registry, auth, planted.encryption];
  const issued = [key.key, token.token, webhook.secret, sandbox.envdAccessToken].map((secret) => {
    if (typeof secret !== "string" || secret.length < 20) throw new Error("an answer has no secret");
    return secret;
  });
  // A log must not have any of these. The archive must have none even so.
  for (const secret of [...inLog, ...issued, database]) {
    const err = {
      message: `it failed with ${secret}`,
      stack: `Error: ${secret}\n    at here`,
      url: `https://h.example/?q=${encodeURIComponent(secret)}`,
    };
    appendFileSync(
      platform.logFile,
      `${JSON.stringify({ level: 50, time: new Date().toISOString(), component: "x", err, msg: "planted" })}\n`,
    );
    appendFileSync(platform.logFile, `not JSON ${Buffer.from(secret).toString("base64")} Authorization: Bearer ${secret}\n`);
  }
  const { api: apiPort, edge: edgePort } = platform.ports;
  const settings = { runtime: "runc", listen: "127.0.0.1", apiPort, edgePort, domain: platform.domain };
  writeFileSync(join(platform.dataDir, "settings.json"), JSON.stringify(settings));
  const archive = join(folder, "report.tar.gz");
  await new SkerryCommand(platform.dataDir).run("support", archive);
  expect(statSync(archive).mode & 0o777).toBe(0o600);
  await runCommand("tar", ["--extract", `--file=${archive}`, `--directory=${folder}`, "--strip-components=1"], { timeoutMs: 60_000 });
  const files = readdirSync(folder).filter((name) => /\.(json|log)$/.test(name));
  expect(files.sort()).toEqual(["counts.json", "doctor.json", "host.json", "settings.json", "skerry.log", "status.json", "versions.json"]);
  const texts = Object.fromEntries(files.map((name) => [name, readFileSync(join(folder, name), "utf8")]));
  const all = Object.values(texts).join("\n");
  const password = new URL(database).password;
  for (const secret of [...inLog, ...issued, vault, password]) {
    const bare = secret.replace(/^(sk_e2b_|e2b_|skerry_admin_|whsec_)/, "");
    for (const form of [bare, encodeURIComponent(bare), Buffer.from(bare).toString("hex")]) {
      expect(all.includes(form), `${secret.slice(0, 8)}… is in the archive`).toBe(false);
    }
  }
  expect(JSON.parse(texts["status.json"] ?? "")).toMatchObject({ running: true, roles: "api,edge,node", database: "sqlite" });
  expect(JSON.parse(texts["settings.json"] ?? "").variables).toMatchObject({
    SKERRY_ENCRYPTION_KEYS: "[removed]",
    SKERRY_RUNTIME: "runc",
    SKERRY_HTTPS_PROXY: expect.stringMatching(/^(http:\/\/)?\[removed\]/),
  });
  expect(JSON.parse(texts["host.json"] ?? "").kernel).toContain(".");
  expect(JSON.parse(texts["doctor.json"] ?? "").length).toBeGreaterThan(5);
  expect(texts["skerry.log"]).toContain('"msg":"platform ready"');
  expect(texts["skerry.log"]).toContain("it failed with");
  rmSync(folder, { recursive: true });
});
