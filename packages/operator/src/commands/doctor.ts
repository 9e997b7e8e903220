import { dataDirOf, dataFolder, EXIT_CODES, readSettings, resolveSettings } from "@skerry/setup/folder";
import type { OperatorContext } from "../context.ts";
import { type CheckContext, type Finding, runCheck } from "../doctor/check.ts";
import { CLUSTER_CHECK } from "../doctor/cluster-check.ts";
import { KERNEL_CHECKS } from "../doctor/kernel-checks.ts";
import { MACHINE_CHECKS } from "../doctor/machine-checks.ts";
import { TLS_CHECKS } from "../doctor/tls-checks.ts";
import { TOOL_CHECKS } from "../doctor/tool-checks.ts";
import { painter, printable } from "../terminal/text.ts";

export type NamedFinding = { readonly name: string } & Finding;

/** Checks what the platform needs from this host. Exit code 4 when a check failed. */
export async function doctor(context: OperatorContext, options: { data?: string; json?: boolean }): Promise<void> {
  const folder = dataFolder(dataDirOf(options.data, context.env));
  const settings = resolveSettings({}, context.env, await readSettings(folder));
  const findings = await findProblems({ folder, settings, repoRoot: context.repoRoot }, (finding) => {
    if (!options.json) process.stdout.write(formatFinding(finding));
  });
  const count = (outcome: Finding["outcome"]) => findings.filter((finding) => finding.outcome === outcome).length;
  if (options.json) process.stdout.write(`${JSON.stringify({ healthy: count("failed") === 0, findings }, null, 2)}\n`);
  else process.stdout.write(`\n${count("passed")} passed, ${count("warning")} warnings, ${count("failed")} failed\n`);
  if (count("failed") > 0) process.exitCode = EXIT_CODES.unfit.code;
}

/** Runs every check, one after the other. */
export async function findProblems(
  checkContext: CheckContext,
  onFound: (finding: NamedFinding) => void = () => {},
): Promise<NamedFinding[]> {
  const findings: NamedFinding[] = [];
  for (const check of [...MACHINE_CHECKS, ...KERNEL_CHECKS, ...TOOL_CHECKS, ...TLS_CHECKS, CLUSTER_CHECK]) {
    const finding = { name: check.name, ...(await runCheck(check, checkContext)) };
    findings.push(finding);
    onFound(finding);
  }
  return findings;
}

const MARKS = { passed: ["good", "✓"], warning: ["warn", "!"], failed: ["bad", "✗"] } as const;

function formatFinding({ name, outcome, found, fix }: { name: string } & Finding): string {
  const paint = painter(process.stdout);
  const [tone, mark] = MARKS[outcome];
  const line = `${paint(tone, mark)} ${name.padEnd(18)} ${printable(found)}\n`;
  return fix === undefined ? line : `${line}${" ".repeat(21)}${paint("strong", "→")} ${printable(fix)}\n`;
}
