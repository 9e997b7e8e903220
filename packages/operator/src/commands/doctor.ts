import { dataDirOf, dataFolder, EXIT_CODES, readSettings, resolveSettings } from "@skerry/setup/folder";
import type { OperatorContext } from "../context.ts";
import { type CheckContext, type Finding, runCheck } from "../doctor/check.ts";
import { CLUSTER_CHECK } from "../doctor/cluster-check.ts";
import { KERNEL_CHECKS } from "../doctor/kernel-checks.ts";
import { MACHINE_CHECKS } from "../doctor/machine-checks.ts";
import { TOOL_CHECKS } from "../doctor/tool-checks.ts";
import { painter, printable } from "../terminal/text.ts";

/** Checks what the platform stands on, by trying it. Exit code 4 when something is missing. */
export async function doctor(context: OperatorContext, options: { data?: string; json?: boolean }): Promise<void> {
  const folder = dataFolder(dataDirOf(options.data, context.env));
  const settings = resolveSettings({}, context.env, await readSettings(folder));
  const checkContext: CheckContext = { folder, settings, repoRoot: context.repoRoot };
  const findings: ({ name: string } & Finding)[] = [];
  for (const check of [...MACHINE_CHECKS, ...KERNEL_CHECKS, ...TOOL_CHECKS, CLUSTER_CHECK]) {
    const finding = { name: check.name, ...(await runCheck(check, checkContext)) };
    findings.push(finding);
    if (!options.json) process.stdout.write(formatFinding(finding));
  }
  const count = (outcome: Finding["outcome"]) => findings.filter((finding) => finding.outcome === outcome).length;
  if (options.json) process.stdout.write(`${JSON.stringify({ healthy: count("bad") === 0, findings }, null, 2)}\n`);
  else process.stdout.write(`\n${count("good")} good, ${count("warn")} to know about, ${count("bad")} to mend\n`);
  if (count("bad") > 0) process.exitCode = EXIT_CODES.unfit.code;
}

const MARKS = { good: "✓", warn: "!", bad: "✗" } as const;

function formatFinding({ name, outcome, found, mend }: { name: string } & Finding): string {
  const paint = painter(process.stdout);
  const line = `${paint(outcome, MARKS[outcome])} ${name.padEnd(18)} ${printable(found)}\n`;
  return mend === undefined ? line : `${line}${" ".repeat(21)}${paint("strong", "→")} ${printable(mend)}\n`;
}
