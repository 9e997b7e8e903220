import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Platform, startPlatform } from "@skerry/testkit";
import { Sandbox, Secret } from "e2b";
import { expect, it } from "vitest";
import { callApi, clientOf } from "../e2e/client.ts";

/** A value in the team's vault, and the key that encrypts it. */
async function keepSecret(platform: Platform): Promise<readonly string[]> {
  const value = `vault-${randomUUID()}`;
  await Secret.create("kept", value, { ...clientOf(platform), metadata: { what: "a-test" } });
  await Secret.update("kept", value, clientOf(platform));
  return [value, readFileSync(join(platform.dataDir, "encryption-keys"), "utf8").trim()];
}

it.each(["gvisor", "runc"] as const)("no secret of the platform is inside a sandbox on %s", async (runtime) => {
  await using platform = await startPlatform({ runtime });
  const vault = await keepSecret(platform);
  const sandbox = await Sandbox.create(clientOf(platform));
  const { envdAccessToken } = (await callApi(platform, `/sandboxes/${sandbox.sandboxId}`)).body as { envdAccessToken: string };
  const { apiKey, accessToken, adminToken, internalSecret, tokenSeed } = platform.secrets;
  const secrets = [apiKey, accessToken, adminToken, internalSecret, tokenSeed, ...vault];

  // The environment, command line and open files of every process, as root inside the sandbox sees them.
  const { stdout: processes } = await sandbox.commands.run(
    "for p in /proc/[0-9]*; do cat $p/environ $p/cmdline 2>/dev/null; ls -l $p/fd 2>/dev/null; done; env; true",
    { user: "root" },
  );
  expect(processes).toContain("node");
  for (const secret of [...secrets, envdAccessToken, platform.dataDir]) expect(processes).not.toContain(secret);

  // The files that were written for this sandbox, and the agent's tree, which all sandboxes see.
  const own = join(platform.dataDir, "node/sandboxes", sandbox.sandboxId);
  const { digest } = JSON.parse(readFileSync(join(platform.dataDir, "agent/current.json"), "utf8"));
  const matches = (text: string, ...paths: string[]) => {
    try {
      return execFileSync("grep", ["-rlaF", "-e", text, ...paths], { encoding: "utf8" });
    } catch (error) {
      if ((error as { status?: number }).status === 1) return "";
      throw error;
    }
  };
  const { area } = JSON.parse(readFileSync(join(own, "sandbox.json"), "utf8")) as { area: string };
  const upper = join(platform.dataDir, "node/areas", area, "fs/u");
  const seen = [upper, join(platform.dataDir, "agent", digest, "/")];
  expect(matches("localhost", upper)).not.toBe("");
  for (const secret of [...secrets, envdAccessToken]) expect(matches(secret, ...seen)).toBe("");
  // The runtime's configuration has none either. The node's own record has the sandbox's token, for the platform's next start. Only
  // root can read the record.
  for (const secret of secrets) expect(matches(secret, join(own, "sandbox.json"), join(own, "bundle"))).toBe("");
  expect(matches(envdAccessToken, join(own, "bundle"))).toBe("");
  expect(execFileSync("stat", ["-c", "%a %u", join(own, "sandbox.json")], { encoding: "utf8" })).toBe("600 0\n");
  await sandbox.kill();
});

it("only root of the host can read the secrets, and the database has none of them", async () => {
  await using platform = await startPlatform({ runtime: "runc" });
  const vault = await keepSecret(platform);
  for (const file of ["secrets.json", "encryption-keys"]) {
    expect(execFileSync("stat", ["-c", "%a %u", join(platform.dataDir, file)], { encoding: "utf8" })).toBe("600 0\n");
  }
  const { apiKey, accessToken, adminToken, internalSecret, tokenSeed } = platform.secrets;
  const database = execFileSync("cat", ["skerry.db", "skerry.db-wal"], { cwd: platform.dataDir, maxBuffer: 1 << 28 }).toString("latin1");
  expect(database).toContain("default");
  expect(database).toContain("a-test");
  const log = readFileSync(platform.logFile, "utf8");
  expect(log).toContain("updateSecret");
  for (const secret of vault) expect([database.includes(secret), log.includes(secret)]).toEqual([false, false]);
  for (const secret of [apiKey, apiKey.replace("e2b_", ""), accessToken.replace("sk_e2b_", ""), adminToken, internalSecret, tokenSeed]) {
    expect(database).not.toContain(secret);
  }
  for (const name of ["skerry.db", "node/sandboxes"]) {
    const others = Number.parseInt(execFileSync("stat", ["-c", "%a", join(platform.dataDir, name)], { encoding: "utf8" }), 8) & 0o006;
    expect(others).toBe(0);
  }
});
