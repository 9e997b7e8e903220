import { chmod, mkdir, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { runCommand } from "@skerry/base";
import { ensureDebianPackages } from "../debian-packages.ts";
import { download, fileDigest } from "../download.ts";
import { OperatorError } from "../operator-error.ts";
import type { Report } from "../steps.ts";
import { toolEnvironment } from "../tool-environment.ts";
import { moduleProxies } from "./module-proxies.ts";
import { GO_TOOLCHAIN_SHA256, GO_VERSION, goArch } from "./pinned.ts";

/** The root of the pinned Go: this host's installation if it has exactly that version, or else a download in `dir`. */
export async function ensureGo(options: { dir: string; report: Report; signal: AbortSignal }): Promise<string> {
  const { dir, report, signal } = options;
  const unpacked = join(dir, `go${GO_VERSION}`);
  for (const root of ["/usr/local/go", "/usr/lib/go", unpacked]) {
    if ((await versionOf(root)) === GO_VERSION) return root;
  }
  const arch = goArch();
  const name = `v0.0.1-go${GO_VERSION}.linux-${arch}`;
  const staging = join(dir, "go.staging");
  await rm(staging, { recursive: true, force: true });
  await mkdir(staging, { recursive: true });
  await ensureDebianPackages(["unzip"], { report, signal });
  report(`downloading Go ${GO_VERSION} (70 MB)`);
  const archive = join(staging, "toolchain.zip");
  await downloadFromProxies({ path: `golang.org/toolchain/@v/${name}.zip`, target: archive, signal });
  const digest = await fileDigest(archive, "sha256");
  if (digest !== GO_TOOLCHAIN_SHA256[arch]) {
    throw new OperatorError(`the downloaded Go toolchain has the wrong SHA-256 ${digest}`, {
      hints: ["The module proxy, or something on the way to it, changed the file. Set GOPROXY to a proxy that you trust."],
    });
  }
  await runCommand("unzip", ["-q", archive, "-d", staging], { signal, timeoutMs: 300_000 });
  const tree = join(staging, `golang.org/toolchain@${name}`);
  await makeExecutable(tree);
  await rm(unpacked, { recursive: true, force: true });
  await rename(tree, unpacked);
  await rm(staging, { recursive: true, force: true });
  return unpacked;
}

async function versionOf(root: string): Promise<string | undefined> {
  try {
    const { stdout } = await runCommand(join(root, "bin/go"), ["version"], { env: toolEnvironment({ GOTOOLCHAIN: "local" }) });
    return /^go version go(\S+) /.exec(stdout)?.[1];
  } catch {
    return undefined;
  }
}

async function downloadFromProxies(options: { path: string; target: string; signal: AbortSignal }): Promise<void> {
  const failures: unknown[] = [];
  for (const proxy of await moduleProxies()) {
    try {
      return await download({ url: `${proxy}/${options.path}`, target: options.target, maxSeconds: 300, signal: options.signal });
    } catch (error) {
      options.signal.throwIfAborted();
      failures.push(error);
    }
  }
  throw new OperatorError("could not download Go from a Go module proxy", {
    hints: [`Install Go ${GO_VERSION} in /usr/local/go, or set GOPROXY to a module proxy that this host can reach.`],
    cause: new AggregateError(failures),
  });
}

/** Module archives contain no file modes. The go command sets these bits when it unpacks a toolchain. */
async function makeExecutable(tree: string): Promise<void> {
  for (const dir of ["bin", "pkg/tool"]) {
    const entries = await readdir(join(tree, dir), { recursive: true, withFileTypes: true });
    for (const entry of entries) if (entry.isFile()) await chmod(join(entry.parentPath, entry.name), 0o755);
  }
}
