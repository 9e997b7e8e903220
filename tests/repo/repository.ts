// What the tests in this folder read: the files that git tracks (or would), and their text.

import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

export const ROOT = join(import.meta.dirname, "../..");

/** Paths relative to the root, generated and ignored files left out. */
export function repositoryFiles(): string[] {
  const output = execFileSync("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], { cwd: ROOT, encoding: "utf8" });
  return output.split("\0").filter((path) => path !== "" && existsSync(join(ROOT, path)));
}

export function readText(path: string): string {
  return readFileSync(join(ROOT, path), "utf8");
}

export function isTypeScript(path: string): boolean {
  return path.endsWith(".ts") && !path.endsWith(".d.ts") && !path.startsWith("packages/wire/gen/");
}

/** Tests may do what the code that they test may not. */
export function isTest(path: string): boolean {
  return path.endsWith(".test.ts") || path.startsWith("tests/") || /^packages\/[^/]+\/test\//.test(path);
}

/** Rows of every Markdown table of a page, cells trimmed, heads and rules left out. */
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

/** The text of a cell that is one code span; undefined when it is not. */
export function codeSpan(cell: string | undefined): string | undefined {
  return /^`([^`]+)`$/.exec(cell ?? "")?.[1];
}

/** What a file imports, re-exports or loads. */
export function importsOf(text: string): string[] {
  const specifier = /(?:\bfrom|\bimport)\s*\(?\s*["']([^"']+)["']/g;
  return [...text.matchAll(specifier)].map((match) => match[1] as string);
}

function isRule(cells: readonly string[]): boolean {
  return cells.length > 0 && cells.every((cell) => /^:?-+:?$/.test(cell));
}
