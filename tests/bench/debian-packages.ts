// Programs of Debian packages, unpacked into a temporary folder. Nothing is installed on this host.

import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand } from "@skerry/base";

const LIMIT_MS = 120_000;

export interface UnpackedPackages extends Disposable {
  /** Contains `usr`. */
  readonly root: string;
}

/** Downloads packages from the package archive of this host. Their dependencies must be among them or installed. */
export async function unpackPackages(names: readonly string[]): Promise<UnpackedPackages> {
  const dir = mkdtempSync(join(tmpdir(), "skerry-bench-packages-"));
  const root = join(dir, "files");
  const remove = () => rmSync(dir, { recursive: true, force: true });
  try {
    await runCommand("apt-get", ["download", ...names], { cwd: dir, timeoutMs: LIMIT_MS });
    const packages = readdirSync(dir).filter((name) => name.endsWith(".deb"));
    if (packages.length < names.length) throw new Error(`apt-get downloaded ${packages.length} of ${names.length} packages`);
    for (const name of packages) await runCommand("dpkg", ["-x", join(dir, name), root], { timeoutMs: LIMIT_MS });
    return { root, [Symbol.dispose]: remove };
  } catch (error) {
    remove();
    throw error;
  }
}
