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
  /** Another data folder, from which runsc is copied if this one has none. */
  readonly otherDataDir?: string;
  readonly extraPackages?: readonly string[];
  /** SKERRY_BASE_IMAGE: the OCI image that the base template is made from, or "none". Undefined if it is not set. */
  readonly baseImage: string | undefined;
  /** The operator's environment. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly steps: Steps;
  readonly signal: AbortSignal;
}

/**
 * Prepares a data folder, so that a platform can start from it. Each step does only what is missing, and leaves a complete result or
 * none, so that the set-up can be interrupted and run again.
 */
export async function setUp(folder: DataFolder, options: SetUpOptions): Promise<void> {
  const { steps, signal, runtime } = options;
  // Report an invalid image reference before anything is changed.
  if (options.baseImage !== undefined) parseBaseImage(wantedBaseImage(options.baseImage, undefined));
  const packages = [...Object.keys(PLATFORM_PACKAGES), ...(options.extraPackages ?? [])];
  await steps.run(
    "Debian packages",
    (report) => ensureDebianPackages(packages, { report, signal }),
    ({ present, installed }) => (installed.length === 0 ? `${present} installed` : `${present} installed, added ${installed.join(", ")}`),
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
    steps.warn("On runc, sandboxes share the host's kernel, and pauses, snapshots and forks keep no memory.");
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
      if (created) return `created in ${folder.secretsFile}`;
      return copyProblem === undefined ? "present" : `present, but the copy is out of date: ${copyProblem}`;
    },
  );
  await setUpBaseTemplate(folder, options);
  signal.throwIfAborted();
}

async function setUpBaseTemplate(folder: DataFolder, { repoRoot, baseImage, runtime, env, steps, signal }: SetUpOptions): Promise<void> {
  const { template, built } = await steps.run(
    "base template",
    (report) => ensureBaseTemplate(folder, { repoRoot, baseImage, runtime, env, report, signal }),
    ({ template, built }) => {
      const { distribution, layers, origin } = template;
      const from = origin?.from === "image" ? `, from ${origin.reference} (${origin.digest.slice(0, 19)})` : "";
      return `${distribution}${from}, ${layers[0]?.slice(7, 19)}${built ? ", built" : ""}`;
    },
  );
  if (!built || template.origin?.from !== "archive" || template.origin.imageFailure === undefined) return;
  steps.warn("The base template was built from this host's package archive, because the OCI image could not be used:");
  steps.note(template.origin.imageFailure);
  steps.note(
    `It has the same contents. To try the image again, run rm ${folder.templateFile} and this command. To use no image, set SKERRY_BASE_IMAGE=none.`,
  );
}
