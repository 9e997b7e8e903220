import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Platform, startPlatform } from "@skerry/testkit";
import { startForwardProxy } from "@skerry/testkit/forward-proxy";
import { SkerryCommand } from "@skerry/testkit/skerry-command";

const CERTIFICATES = process.env.SSL_CERT_FILE ?? "/etc/ssl/certs/ca-certificates.crt";
export const BUILD_MS = 1_800_000;

export interface ShippedPlatform extends AsyncDisposable {
  readonly platform: Platform;
}

/** A platform with some of the templates that ship, built by the command, whose sandboxes reach what this host reaches. */
export async function startShippedPlatform(runtime: "gvisor" | "runc", ...names: string[]): Promise<ShippedPlatform> {
  const proxy = await startForwardProxy();
  const site = { SKERRY_CA_FILE: CERTIFICATES, SKERRY_HTTP_PROXY: proxy.url, SKERRY_HTTPS_PROXY: proxy.url };
  const platform = await startPlatform({ runtime, env: { ...site, SKERRY_POOL_SIZE: "1" } });
  const end = async () => {
    await platform[Symbol.asyncDispose]();
    await proxy[Symbol.asyncDispose]();
  };
  // `up` would have written the settings, from which the command knows the address of the API.
  const { api, edge } = platform.ports;
  const settings = { runtime, listen: "127.0.0.1", apiPort: api, edgePort: edge, domain: platform.domain };
  writeFileSync(join(platform.dataDir, "settings.json"), JSON.stringify(settings));
  try {
    const skerry = new SkerryCommand(platform.dataDir, { limitMs: BUILD_MS });
    for (const name of names) await skerry.run("templates", "build", name);
  } catch (error) {
    await end();
    throw error;
  }
  return { platform, [Symbol.asyncDispose]: end };
}
