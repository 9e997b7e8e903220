import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { runCommand } from "@skerry/base";
import { OperatorError } from "../operator-error.ts";
import { toolEnvironment } from "../tool-environment.ts";
import { aptTransportOptions } from "./apt-options.ts";
import type { Distribution } from "./distribution.ts";
import { BASE_PACKAGES, LEFT_OUT } from "./recipe.ts";

/** Packages to install, and paths to leave out. Hooks are shell commands that run after the essential packages, with the target as `$1`. */
export interface ArchiveSelection {
  readonly packages: readonly string[];
  readonly leftOut: readonly string[];
  readonly hooks?: readonly string[];
}

const BASE_SELECTION: ArchiveSelection = { packages: Object.keys(BASE_PACKAGES), leftOut: LEFT_OUT };

/** Fills `target` with a distribution and packages from its archives. The default selection is the recipe's. */
export async function fillFromArchive(options: {
  readonly target: string;
  readonly setupDir: string;
  readonly distribution: Distribution;
  readonly selection?: ArchiveSelection;
  readonly signal: AbortSignal;
}): Promise<void> {
  const { target, setupDir, distribution, signal, selection = BASE_SELECTION } = options;
  // Passed in a file, because proxy settings may contain a password.
  const aptFile = join(setupDir, "mmdebstrap.conf");
  await writeFile(aptFile, `${['Acquire::Retries "3";', ...(await aptTransportOptions())].join("\n")}\n`, { mode: 0o600 });
  const args = ["--variant=minbase", "--mode=root", "--format=directory", `--include=${selection.packages.join(",")}`];
  for (const pattern of selection.leftOut) args.push(`--dpkgopt=path-exclude=${pattern}`);
  for (const hook of selection.hooks ?? []) args.push(`--essential-hook=${hook}`);
  try {
    await runCommand("mmdebstrap", [...args, `--aptopt=${aptFile}`, distribution.codename, target, ...distribution.buildSources], {
      env: toolEnvironment({ DEBIAN_FRONTEND: "noninteractive" }),
      timeoutMs: 900_000,
      maxOutputBytes: 16 * 1024 * 1024,
      signal,
    });
  } catch (cause) {
    // A killed mmdebstrap may leave these mounted. The caller must not delete through them.
    await runCommand("umount", ["--recursive", ...["proc", "sys", "dev"].map((name) => join(target, name))]).catch(() => {});
    signal.throwIfAborted();
    throw new OperatorError("could not build the template: mmdebstrap failed", {
      hints: [
        ...String(cause instanceof Error ? cause.message : cause)
          .split("\n")
          .slice(-10),
        "Check that apt-get update works. The template is built from the archives in /etc/apt.",
      ],
      cause,
    });
  }
}
