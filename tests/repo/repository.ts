// The repository's files and their text, for the tests in this folder.

import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

export const ROOT = join(import.meta.dirname, "../..");

const NOT_SOURCE: ReadonlySet<string> = new Set(["node_modules", ".git", "dist", ".skerry"]);

/** Paths relative to the root, without generated and ignored files. Without git, all files outside the folders of NOT_SOURCE. */
export function repositoryFiles(): string[] {
  if (!existsSync(join(ROOT, ".git"))) return walk("");
  // `./skerry test` runs as root, while the clone may belong to another user.
  const args = ["-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"];
  const output = execFileSync("git", args, { cwd: ROOT, encoding: "utf8" });
  return output.split("\0").filter((path) => path !== "" && existsSync(join(ROOT, path)));
}

function walk(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return NOT_SOURCE.has(entry.name) ? [] : walk(path);
    return entry.isFile() && !entry.name.endsWith(".log") ? [path] : [];
  });
}

export function readText(path: string): string {
  return readFileSync(join(ROOT, path), "utf8");
}

export function isTypeScript(path: string): boolean {
  return path.endsWith(".ts") && !path.endsWith(".d.ts") && !path.startsWith("packages/wire/gen/");
}

/** Tests are exempt from some rules. */
export function isTest(path: string): boolean {
  return path.endsWith(".test.ts") || path.startsWith("tests/") || /^packages\/[^/]+\/test\//.test(path);
}

/** The rows of all Markdown tables of a page, with trimmed cells, without head rows and rules. */
export function tableRows(path: string): string[][] {
  const rows = readText(path)
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line.startsWith("|"))
    .map((line) =>
      line
        .slice(1, -1)
        .split(/(?<!\\)\|/)
        .map((cell) => cell.trim()),
    );
  return rows.filter((cells, at) => !isRule(cells) && !isRule(rows[at + 1] ?? []));
}

/** The text of a cell that is a single code span; otherwise undefined. */
export function codeSpan(cell: string | undefined): string | undefined {
  return /^`([^`]+)`$/.exec(cell ?? "")?.[1];
}

/** The modules that a file imports, re-exports or loads. */
export function importsOf(text: string): string[] {
  const specifier = /(?:\bfrom|\bimport)\s*\(?\s*["']([^"']+)["']/g;
  return [...text.matchAll(specifier)].map((match) => match[1] as string);
}

function isRule(cells: readonly string[]): boolean {
  return cells.length > 0 && cells.every((cell) => /^:?-+:?$/.test(cell));
}
