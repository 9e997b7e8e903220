import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { rm } from "node:fs/promises";
import { pipeline } from "node:stream/promises";
import { runCommand } from "@skerry/base";
import { toolEnvironment } from "./tool-environment.ts";

/** Downloads a file with curl, which uses this host's proxies and certificates. Fails within seconds without a connection. */
export async function download(options: { url: string; target: string; maxSeconds: number; signal: AbortSignal }): Promise<void> {
  const { url, target, maxSeconds, signal } = options;
  try {
    const args = [
      "--fail",
      "--silent",
      "--show-error",
      "--location",
      "--proto",
      "=https,http",
      "--connect-timeout",
      "5",
      "--speed-limit",
      "1000",
      "--speed-time",
      "20",
    ];
    await runCommand("curl", [...args, "--max-time", String(maxSeconds), "--output", target, url], {
      env: toolEnvironment(),
      timeoutMs: (maxSeconds + 5) * 1000,
      signal,
    });
  } catch (error) {
    await rm(target, { force: true });
    throw error;
  }
}

export async function fileDigest(path: string, algorithm: "sha256" | "sha512"): Promise<string> {
  const hash = createHash(algorithm);
  await pipeline(createReadStream(path, { highWaterMark: 1 << 20 }), hash);
  return hash.digest("hex");
}
