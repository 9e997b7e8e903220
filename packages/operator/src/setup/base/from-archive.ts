import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { runCommand } from "@skerry/base";
import { OperatorError } from "../../operator-error.ts";
import { toolEnvironment } from "../tool-environment.ts";
import { aptTransportOptions } from "./apt-options.ts";
import type { Distribution } from "./distribution.ts";
import { BASE_PACKAGES, LEFT_OUT } from "./recipe.ts";

/** Fills `target` with the distribution of this machine and the packages of the recipe, from the archives that it uses itself. */
export async function fillFromArchive(options: {
  readonly target: string;
  readonly setupDir: string;
  readonly distribution: Distribution;
  readonly signal: AbortSignal;
}): Promise<void> {
  const { target, setupDir, distribution, signal } = options;
  // In a file: what says how to reach a proxy may hold its password.
  const aptFile = join(setupDir, "mmdebstrap.conf");
  await writeFile(aptFile, `${['Acquire::Retries "3";', ...(await aptTransportOptions())].join("\n")}\n`, { mode: 0o600 });
  const args = ["--variant=minbase", "--mode=root", "--format=directory", `--include=${Object.keys(BASE_PACKAGES).join(",")}`];
  for (const pattern of LEFT_OUT) args.push(`--dpkgopt=path-exclude=${pattern}`);
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
    throw new OperatorError("the base template could not be made: mmdebstrap failed", {
      mend: [
        ...String(cause instanceof Error ? cause.message : cause)
          .split("\n")
          .slice(-10),
        "Check that apt-get update works here; the template is made from the archives in /etc/apt.",
      ],
      cause,
    });
  }
}
