import { parseBaseImage, wantedBaseImage } from "./base/base-image.ts";
import { ensureBaseTemplate } from "./base/ensure-base.ts";
import { ensureDebianPackages, PLATFORM_PACKAGES } from "./debian-packages.ts";
import { ensureAgent } from "./ensure-agent.ts";
import { type DataFolder, dataFolder } from "./folder/data-folder.ts";
import { ensureSecrets } from "./folder/secrets.ts";
import type { RuntimeName } from "./folder/settings.ts";
import { ensureRunsc } from "./runsc/ensure-runsc.ts";
import type { Steps } from "./steps.ts";
import { readTools, recordTools } from "./tools.ts";

export interface SetUpOptions {
  readonly repoRoot: string;
  readonly runtime: RuntimeName;
  /** A data folder whose runsc may be taken when this one has none. */
  readonly otherDataDir?: string;
  readonly extraPackages?: readonly string[];
  /** The image that the base template is made from (SKERRY_BASE_IMAGE); "none" for none, undefined when nobody said anything. */
  readonly baseImage: string | undefined;
  readonly steps: Steps;
  readonly signal: AbortSignal;
}

/**
 * Brings a data folder to where a platform can start from it. Every step looks first, does only what is missing,
 * and leaves something whole or nothing, so that it can be interrupted and run again.
 */
export async function setUp(folder: DataFolder, options: SetUpOptions): Promise<void> {
  const { steps, signal, runtime } = options;
  // A mistake in it is told before anything is done.
  if (options.baseImage !== undefined) parseBaseImage(wantedBaseImage(options.baseImage, undefined));
  const packages = [...Object.keys(PLATFORM_PACKAGES), ...(options.extraPackages ?? [])];
  await steps.run(
    "Debian packages",
    (report) => ensureDebianPackages(packages, { report, signal }),
    ({ present, installed }) => (installed.length === 0 ? `${present} present` : `${present} present, installed ${installed.join(", ")}`),
  );
  signal.throwIfAborted();
  const recordedSha512 = (await readTools(folder))?.runsc?.sha512;
  if (runtime === "gvisor") {
    await steps.run(
      "gVisor (runsc)",
      async (report) => {
        const otherBinDir = options.otherDataDir === undefined ? undefined : dataFolder(options.otherDataDir).binDir;
        const runsc = await ensureRunsc(folder, { recordedSha512, otherBinDir, report, signal });
        await recordTools(folder, runsc);
        return runsc;
      },
      ({ version, sha512, source }) => `${version}, ${source}, sha512 ${sha512.slice(0, 12)}`,
    );
  } else {
    steps.warn("runc was asked for: sandboxes share the host's kernel, and there is no pause with memory, snapshot or fork");
    await recordTools(folder, undefined);
  }
  signal.throwIfAborted();
  await steps.run(
    "sandbox agent",
    () => ensureAgent(folder),
    ({ version, digest, changed }) => `${version}, ${digest.replace("sha256:", "").slice(0, 12)}${changed ? ", assembled" : ""}`,
  );
  signal.throwIfAborted();
  await steps.run(
    "keys and tokens",
    () => ensureSecrets(folder),
    ({ created, copyProblem }) => {
      if (created) return `made, in ${folder.secretsFile}`;
      return copyProblem === undefined ? "present" : `present, but without a good copy: ${copyProblem}`;
    },
  );
  await setUpBaseTemplate(folder, options);
  signal.throwIfAborted();
}

async function setUpBaseTemplate(folder: DataFolder, { repoRoot, baseImage, steps, signal }: SetUpOptions): Promise<void> {
  const { template, built } = await steps.run(
    "base template",
    (report) => ensureBaseTemplate(folder, { repoRoot, baseImage, report, signal }),
    ({ template, built }) => {
      const { distribution, layers, origin } = template;
      const from = origin?.from === "image" ? `, from ${origin.reference} (${origin.digest.slice(0, 19)})` : "";
      return `${distribution}${from}, ${layers[0]?.slice(7, 19)}${built ? ", made" : ""}`;
    },
  );
  if (!built || template.origin?.from !== "archive" || template.origin.imageFailure === undefined) return;
  steps.warn(`the base template is made from this machine's package archive, because the image can't be used:`);
  steps.note(template.origin.imageFailure);
  steps.note(
    `Nothing is missing in it. To try the image again: rm ${folder.templateFile}, then this command. For no image: SKERRY_BASE_IMAGE=none`,
  );
}
