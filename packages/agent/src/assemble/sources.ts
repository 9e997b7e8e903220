// The files of the agent's tree, and where they come from on this host.

import { realpath } from "node:fs/promises";
import { createRequire } from "node:module";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { PlatformError, runCommand } from "@skerry/base";
import type { AgentArch } from "../command.ts";
import { KOFFI_ADDON } from "./bundle.ts";

export interface SourceFile {
  /** Path inside the tree. */
  readonly target: string;
  readonly source: string;
  readonly mode: number;
}

const require = createRequire(import.meta.url);

/** From the package `tini` of Debian and Ubuntu. */
const TINI = "/usr/bin/tini-static";

export function hostArch(): AgentArch {
  if (process.arch === "x64" || process.arch === "arm64") return process.arch;
  throw new PlatformError("agent_unsupported", `there is no agent for the architecture ${process.arch}`);
}

export function agentEntry(): string {
  return fileURLToPath(new URL("../../../../services/agent/main.ts", import.meta.url));
}

/** The path of koffi's addon for glibc, which is a single file. */
export function koffiAddon(arch: AgentArch): string {
  const main = require.resolve(`@koromix/koffi-linux-${arch}`, { paths: [require.resolve("koffi")] });
  return join(dirname(main), `linux_${arch}/koffi.node`);
}

export async function collectSources(arch: AgentArch): Promise<SourceFile[]> {
  const node = join(dirname(require.resolve(`node-linux-${arch}/package.json`)), "bin/node");
  const koffi = koffiAddon(arch);
  const libraries = new Set([...(await librariesOf(node)), ...(await librariesOf(koffi))]);
  return [
    { target: "bin/node", source: node, mode: 0o755 },
    { target: "bin/tini", source: TINI, mode: 0o755 },
    { target: KOFFI_ADDON, source: koffi, mode: 0o755 },
    ...[...libraries].sort().map((source) => ({ target: `lib/${basename(source)}`, source, mode: 0o755 })),
  ];
}

/** The dynamic loader and all shared libraries of a program, by the names under which the loader looks for them. */
async function librariesOf(program: string): Promise<string[]> {
  const { stdout } = await runCommand("ldd", [await realpath(program)]);
  return parseLdd(stdout);
}

export function parseLdd(output: string): string[] {
  const missing = /^\s*(\S+) => not found/m.exec(output);
  if (missing) throw new PlatformError("agent_library_missing", `the shared library ${missing[1]} is not installed`);
  return [...output.matchAll(/(?:^|=>)\s*(\/\S+) \(0x/gm)].map((match) => match[1] ?? "");
}
