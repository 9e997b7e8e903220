import { existsSync, statSync } from "node:fs";
import { join, posix } from "node:path";
import { expect, test } from "vitest";
import { ROOT, readText, repositoryFiles } from "./repository.ts";

const pages = repositoryFiles().filter((path) => path.endsWith(".md"));

/** The anchor that GitHub makes from a heading. */
function anchorOf(heading: string): string {
  return heading
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, "")
    .replace(/\s/g, "-");
}

function withoutCode(text: string): string {
  return text.replace(/```[\s\S]*?```/g, "").replace(/`[^`\n]*`/g, "");
}

function anchorsIn(path: string): Set<string> {
  const text = readText(path).replace(/```[\s\S]*?```/g, "");
  return new Set([...text.matchAll(/^#{1,6}\s+(.+)$/gm)].map((match) => anchorOf(match[1] ?? "")));
}

test.each(pages)("%s: links inside the repository lead somewhere", (page) => {
  const broken: string[] = [];
  for (const match of withoutCode(readText(page)).matchAll(/\]\(([^)\s]+)(?:\s+"[^"]*")?\)/g)) {
    const link = match[1] ?? "";
    if (/^[a-z]+:/i.test(link)) continue;
    const [path = "", anchor] = link.split("#");
    const target = path === "" ? page : posix.join(posix.dirname(page), decodeURI(path));
    if (target.startsWith("..") || !existsSync(join(ROOT, target))) broken.push(link);
    else if (anchor !== undefined && statSync(join(ROOT, target)).isFile() && target.endsWith(".md") && !anchorsIn(target).has(anchor)) {
      broken.push(link);
    }
  }
  expect(broken).toEqual([]);
});

test("the test files that SECURITY.md names exist", () => {
  const named = [...readText("SECURITY.md").matchAll(/`(tests\/[^`]+\.test\.ts|packages\/[^`]+\.test\.ts)`/g)].map(
    (match) => match[1] ?? "",
  );
  expect(named.length).toBeGreaterThan(0);
  expect([...new Set(named)].filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
});

test("every outcome of SECURITY.md has its own number and names the tests that try it", () => {
  const rows = [...readText("SECURITY.md").matchAll(/^\| ([A-Z]\d+): .* \| ([^|]+) \|$/gm)].map(([, id = "", tests = ""]) => ({
    id,
    tests,
  }));
  expect(rows.length).toBeGreaterThan(40);
  expect(rows.map(({ id }) => id)).toEqual([...new Set(rows.map(({ id }) => id))]);
  expect(rows.filter(({ tests }) => !/`[^`]+\.test\.ts`/.test(tests))).toEqual([]);
});

/** All pages but the changelog, which may name files that no longer exist. */
const CURRENT_PAGES = pages.filter((page) => page !== "CHANGELOG.md");

test.each(CURRENT_PAGES)("%s: the files and folders that it names exist", (page) => {
  const named = [...readText(page).matchAll(/`((?:packages|services|tests|scripts|spec|docs)\/[\w./-]+)`/g)].map((match) => match[1] ?? "");
  expect([...new Set(named)].filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
});
