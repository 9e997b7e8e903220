import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { runCommand } from "@skerry/base";
import { OperatorError } from "../operator-error.ts";
import { toolEnvironment } from "../tool-environment.ts";
import { aptTransportOptions } from "./apt-options.ts";
import type { Distribution } from "./distribution.ts";
import { BASE_PACKAGES, LEFT_OUT } from "./recipe.ts";

/** What goes in. Hooks are shell commands that get the target as `$1`, before any but the essential packages are there. */
export interface ArchiveSelection {
  readonly packages: readonly string[];
  readonly leftOut: readonly string[];
  readonly hooks?: readonly string[];
}

const BASE_SELECTION: ArchiveSelection = { packages: Object.keys(BASE_PACKAGES), leftOut: LEFT_OUT };

/** Fills `target` with a distribution and packages (those of the recipe, when nothing else is said), from the archives that it names. */
export async function fillFromArchive(options: {
  readonly target: string;
  readonly setupDir: string;
  readonly distribution: Distribution;
  readonly selection?: ArchiveSelection;
  readonly signal: AbortSignal;
}): Promise<void> {
  const { target, setupDir, distribution, signal, selection = BASE_SELECTION } = options;
  // In a file: what says how to reach a proxy may hold its password.
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
    // It may leave these mounted when it is killed: nobody may walk into them.
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
