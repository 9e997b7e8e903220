// The three sources of runsc: the data folder, the official release and a build from source.

import { chmod, copyFile, mkdir, readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { runCommand } from "@skerry/base";
import { download, fileDigest } from "../download.ts";
import type { Report } from "../steps.ts";
import { toolEnvironment } from "../tool-environment.ts";
import { ensureGo } from "./go-toolchain.ts";
import { GVISOR_BUILD_SHA512, GVISOR_MODULE, GVISOR_RELEASE, GVISOR_RELEASE_BASE, GVISOR_VERSION, goArch } from "./pinned.ts";

export interface RunscBinary {
  readonly path: string;
  readonly version: string;
  readonly sha512: string;
  readonly source: "data folder" | "official release" | "built from source";
}

interface SourceOptions {
  readonly staging: string;
  readonly workDir: string;
  readonly report: Report;
  readonly signal: AbortSignal;
}

/** The binary in the data folder whose digest is the pinned or the recorded one. */
export async function findRunsc(binDir: string, recorded: string | undefined): Promise<RunscBinary | undefined> {
  const names = (await readdir(binDir).catch(() => [])).filter((name) => /^runsc-[0-9a-f]{12}$/.test(name));
  const pinned = GVISOR_BUILD_SHA512[goArch()];
  const wanted = [pinned, recorded].filter((digest): digest is string => digest !== undefined);
  for (const sha512 of wanted) {
    const name = `runsc-${sha512.slice(0, 12)}`;
    if (!names.includes(name)) continue;
    const path = join(binDir, name);
    // A damaged file is replaced from the next source.
    if ((await fileDigest(path, "sha512")) !== sha512) continue;
    return { path, version: sha512 === pinned ? GVISOR_VERSION : `release-${GVISOR_RELEASE}`, sha512, source: "data folder" };
  }
  return undefined;
}

/** Downloads the official release and compares it with its published SHA-512. */
export async function fetchRelease(options: SourceOptions): Promise<RunscBinary> {
  const { staging, report, signal } = options;
  const arch = goArch() === "arm64" ? "aarch64" : "x86_64";
  const base = `${GVISOR_RELEASE_BASE}/${GVISOR_RELEASE}/${arch}/runsc`;
  report("contacting the gVisor release server");
  const sumFile = `${staging}.sha512`;
  await download({ url: `${base}.sha512`, target: sumFile, maxSeconds: 10, signal });
  const expected = /^([0-9a-f]{128})\b/.exec(await readFile(sumFile, "utf8"))?.[1];
  await rm(sumFile, { force: true });
  if (expected === undefined) throw new Error("the checksum file of the release server contains no SHA-512");
  report(`downloading gVisor ${GVISOR_RELEASE}`);
  await download({ url: base, target: staging, maxSeconds: 300, signal });
  const sha512 = await fileDigest(staging, "sha512");
  if (sha512 !== expected) throw new Error(`the download has SHA-512 ${sha512}, which is not the published one`);
  await chmod(staging, 0o755);
  return { path: staging, version: `release-${GVISOR_RELEASE}`, sha512, source: "official release" };
}

/** A Go module that depends on gVisor and pins the digests of all dependencies. */
const BUILD_MODULE = join(import.meta.dirname, "module");

/**
 * Builds runsc from the Go module proxy with the pinned Go. The result must be the pinned binary, bit for bit. It is built as a tool of
 * our own module: `go install` would use the versions in gVisor's go.mod, and not every proxy serves all of them.
 */
export async function buildFromModules(options: SourceOptions): Promise<RunscBinary> {
  const { staging, workDir, report, signal } = options;
  const goRoot = await ensureGo({ dir: workDir, report, signal });
  report("building gVisor from source (1 to 3 minutes)");
  const work = join(workDir, "gvisor-build");
  await mkdir(work, { recursive: true });
  for (const name of ["go.mod", "go.sum"]) await copyFile(join(BUILD_MODULE, name), join(work, name));
  const built = join(work, "runsc");
  const env = toolEnvironment({
    GOROOT: goRoot,
    GOPATH: join(work, "path"),
    GOCACHE: join(work, "cache"),
    GOENV: join(toolEnvironment().HOME ?? "/root", ".config/go/env"),
    GOTOOLCHAIN: "local",
    GOFLAGS: "-modcacherw",
    GOWORK: "off",
    GOAMD64: "v1",
    // With cgo, the sandbox process would need libraries that its empty root does not have.
    CGO_ENABLED: "0",
  });
  const flags = ["-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", built];
  await runCommand(join(goRoot, "bin/go"), ["build", ...flags, `${GVISOR_MODULE}/runsc`], {
    env,
    cwd: work,
    timeoutMs: 1_200_000,
    maxOutputBytes: 16 * 1024 * 1024,
    signal,
  });
  const sha512 = await fileDigest(built, "sha512");
  if (sha512 !== GVISOR_BUILD_SHA512[goArch()]) throw new Error(`the build has SHA-512 ${sha512}, which is not the pinned one`);
  await copyFile(built, staging);
  await chmod(staging, 0o755);
  await rm(work, { recursive: true, force: true });
  return { path: staging, version: GVISOR_VERSION, sha512, source: "built from source" };
}
