import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ApiHarness } from "./api-harness.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "skerry-secrets-"));
});
afterAll(async () => await rm(folder, { recursive: true, force: true }));

it("keeps no key, token or environment variable in the database", async () => {
  await using api = await ApiHarness.start(`sqlite:${join(folder, "skerry.db")}`);
  const { body } = await api.call("POST", "/v2/sandboxes", {
    body: { templateID: "base", envVars: { PASSWORD: "hunter2hunter2" }, metadata: { seen: "needle-in-metadata" } },
  });
  const link = await api.call("POST", `/sandboxes/${body.sandboxID}/links`, { body: { port: 3000, expiresIn: 600 } });
  const files = await readdir(folder);
  const bytes = Buffer.concat(await Promise.all(files.map((name) => readFile(join(folder, name)))));
  // Proves that the search finds text that is in the database.
  expect(bytes.includes("needle-in-metadata")).toBe(true);
  const secrets = [
    api.apiKey.slice(4),
    api.accessToken.slice(7),
    api.adminToken,
    body.envdAccessToken,
    "hunter2hunter2",
    link.body.token.split(".")[1],
  ];
  for (const secret of secrets) {
    expect(bytes.includes(secret)).toBe(false);
    expect(bytes.includes(Buffer.from(secret, "hex").subarray(0, 20)) && /^[0-9a-f]+$/.test(secret)).toBe(false);
  }
});
