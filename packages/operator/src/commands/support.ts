import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { runCommand } from "@skerry/base";
import { dataDirOf, dataFolder, OperatorError, readSettings, resolveSettings } from "@skerry/setup/folder";
import type { OperatorContext } from "../context.ts";
import { findDaemon } from "../daemon/find-daemon.ts";
import { requireRoot } from "../require-root.ts";
import { readStatus } from "../status/read-status.ts";
import { collect } from "../support/collect.ts";
import { Scrubber } from "../support/scrub.ts";
import { environmentOf, secretValuesOf } from "../support/secret-values.ts";
import { createSteps } from "../terminal/steps.ts";
import { findProblems } from "./doctor.ts";

/** Writes an archive for a bug report. It contains no secret. Works also when the platform does not run. */
export async function support(context: OperatorContext, file: string | undefined, options: { readonly data?: string }): Promise<void> {
  requireRoot("support");
  const folder = dataFolder(dataDirOf(options.data, context.env));
  const settings = await readSettings(folder);
  if (!settings) throw new OperatorError(`there is no platform in ${folder.root}`);
  const name = `skerry-support-${new Date().toISOString().slice(0, 19).replaceAll(/[-:]/g, "").replace("T", "-")}`;
  const target = resolve(file ?? `${name}.tar.gz`);
  if (existsSync(target)) throw new OperatorError(`${target} exists already`, { hints: ["Name a new file."] });
  const steps = createSteps();
  const daemon = await findDaemon(folder).catch(() => undefined);
  const variables = daemon ? await environmentOf(daemon.pid) : context.env;
  const scrubber = new Scrubber(await secretValuesOf(folder, [context.env, variables]));
  await mkdir(folder.workDir, { recursive: true });
  const work = await mkdtemp(join(folder.workDir, "support-"));
  const partial = join(work, "archive.tar.gz");
  try {
    const findings = await steps.run(
      "doctor",
      async () => await findProblems({ folder, settings: resolveSettings({}, context.env, settings), repoRoot: context.repoRoot }),
      (found) => `${found.filter(({ outcome }) => outcome !== "passed").length} findings`,
    );
    const status = await readStatus(context, folder);
    await mkdir(join(work, name));
    for (const { name: part, text } of await collect({ context, folder, status, findings, variables })) {
      await writeFile(join(work, name, part), scrubber.scrub(text), { mode: 0o600 });
    }
    await runCommand("install", ["-m", "600", "/dev/null", partial], { timeoutMs: 10_000 });
    await runCommand("tar", ["--create", "--gzip", `--file=${partial}`, "--owner=0", "--group=0", `--directory=${work}`, name], {
      timeoutMs: 60_000,
    });
    await runCommand("mv", ["--no-clobber", "--", partial, target], { timeoutMs: 60_000 });
  } finally {
    await rm(work, { recursive: true, force: true });
  }
  process.stdout.write(
    `${target}\n\nIt has versions, settings, the findings of doctor, the status, and the end of the log. Keys, tokens, passwords and URLs with them\nwere removed. It names sandboxes, teams and addresses: look at it before you send it to others.\n`,
  );
}
