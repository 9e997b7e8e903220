// What is built: twelve steps with apt, pip, npm and 5,000 files, on an image with the base template's files.

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runCommand } from "@skerry/base";
import type { TestRegistry } from "@skerry/testkit";
import { baseLayer } from "../bare.ts";

const FILES = 5_000;
const BIG_FILES = 10;
const BIG_FILE_BYTES = 65_000_000;
const LIMIT_MS = 600_000;

const STEPS = `ENV PIP_CERT=/opt/host-ca.crt NODE_EXTRA_CA_CERTS=/opt/host-ca.crt npm_config_cafile=/opt/host-ca.crt
RUN apt-get update && apt-get install -y --no-install-recommends jq
RUN pip install --break-system-packages --root-user-action=ignore requests
WORKDIR /app
COPY package.json ./
RUN npm install --no-audit --no-fund
COPY files /app/files
RUN find /app/files -type f | wc -l > /app/count
RUN tar -cf /app/files.tar -C /app files
ENV APP_MODE=bench
RUN mkdir -p /app/out && cp /app/count /app/out/
COPY last.txt /app/
`;

/** Writes the Dockerfile and its files. */
export function writeBuildDirectory(dir: string, image: string): void {
  mkdirSync(join(dir, "files"), { recursive: true });
  writeFileSync(join(dir, "Dockerfile"), `FROM ${image}\n${STEPS}`);
  writeFileSync(
    join(dir, "package.json"),
    JSON.stringify({ name: "bench", version: "1.0.0", dependencies: { semver: "7.6.3", ms: "2.1.3" } }),
  );
  for (let index = 0; index < FILES; index++) {
    const folder = join(dir, "files", String(index % 50));
    if (index < 50) mkdirSync(folder);
    writeFileSync(join(folder, `${index}.txt`), `file ${index}\n`.repeat(1 + (index % 200)));
  }
  writeFileSync(join(dir, "last.txt"), "first\n");
}

/** An image with the files of the base template, and the authorities that this host trusts. */
export async function pushBaseImage(
  registry: TestRegistry,
  options: { readonly cacheRoot: string; readonly dir: string },
): Promise<string> {
  const layers = [await tarOf(baseLayer(options.cacheRoot), options.dir), await certificateLayer(options.dir)];
  return registry.push("bench-base:1", { layers, config: { Env: ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"] } });
}

/** An image of about one gigabyte, half of which can be compressed. */
export async function pushBigImage(registry: TestRegistry, options: { readonly cacheRoot: string; readonly dir: string }): Promise<string> {
  const content = mkdtempSync(join(options.dir, "big-"));
  mkdirSync(join(content, "data"));
  for (let index = 0; index < BIG_FILES; index++) {
    const half = BIG_FILE_BYTES / 2;
    const bytes = Buffer.alloc(BIG_FILE_BYTES, `${index}`);
    for (let offset = 0; offset < half; offset += 65_536) {
      crypto.getRandomValues(bytes.subarray(offset, Math.min(offset + 65_536, half)));
    }
    writeFileSync(join(content, "data", `${index}.bin`), bytes);
  }
  const layers = [await tarOf(baseLayer(options.cacheRoot), options.dir), await tarOf(content, options.dir)];
  rmSync(content, { recursive: true });
  return registry.push("bench-big:1", { layers });
}

async function certificateLayer(dir: string): Promise<Buffer> {
  const content = mkdtempSync(join(dir, "ca-"));
  mkdirSync(join(content, "opt"));
  writeFileSync(join(content, "opt/host-ca.crt"), readFileSync("/etc/ssl/certs/ca-certificates.crt"));
  return tarOf(content, dir);
}

async function tarOf(content: string, dir: string): Promise<Buffer> {
  const file = join(dir, "layer.tar");
  await runCommand("tar", ["--numeric-owner", "-cf", file, "-C", content, "."], { timeoutMs: LIMIT_MS });
  const bytes = readFileSync(file);
  rmSync(file);
  return bytes;
}
