import { createHash } from "node:crypto";
import { mkdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { runCommand } from "@skerry/base";
import { ensureGo } from "../runsc/go-toolchain.ts";
import { GO_VERSION } from "../runsc/pinned.ts";
import type { Report } from "../steps.ts";
import { toolEnvironment } from "../tool-environment.ts";

const SOURCES = ["go.mod", "main.go"];

/** Hash of the program's sources and the version of the compiler. */
export async function goProgramHash(sourcesDir: string): Promise<string> {
  const hash = createHash("sha256").update(GO_VERSION);
  for (const name of SOURCES) hash.update(`\0${name}\0`).update(await readFile(join(sourcesDir, name)));
  return hash.digest("hex");
}

/** Compiles the soak's Go program with the pinned Go to /opt/soak/soak-go in `target`. */
export async function buildGoProgram(options: {
  readonly sourcesDir: string;
  readonly target: string;
  readonly workDir: string;
  readonly report: Report;
  readonly signal: AbortSignal;
}): Promise<void> {
  const { sourcesDir, target, workDir, report, signal } = options;
  const dir = join(target, "opt/soak");
  await mkdir(dir, { recursive: true, mode: 0o755 });
  const go = await ensureGo({ dir: workDir, report, signal });
  report("compiling the Go program");
  const cache = join(workDir, "soak-go-cache");
  try {
    await runCommand(join(go, "bin/go"), ["build", "-trimpath", "-ldflags=-s -w", "-o", join(dir, "soak-go"), "."], {
      cwd: sourcesDir,
      env: toolEnvironment({ CGO_ENABLED: "0", GOTOOLCHAIN: "local", GOPROXY: "off", GOFLAGS: "", GOCACHE: cache, GOROOT: go }),
      timeoutMs: 600_000,
      signal,
    });
  } finally {
    await rm(cache, { recursive: true, force: true });
  }
}
