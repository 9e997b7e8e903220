import { ERROR_CATALOG } from "@skerry/wire";
import { expect, test } from "vitest";
import { isTest, isTypeScript, readText, repositoryFiles } from "./repository.ts";

const sources = repositoryFiles().filter((path) => isTypeScript(path) && !isTest(path) && /^(packages|services)\//.test(path));
const packageOf = (path: string) => path.split("/").slice(0, 2).join("/");

/** What the declarations of `ErrorCodes` say, by folder of a package. The API's codes are the public ones. */
function declaredCodes(): Map<string, ReadonlySet<string>> {
  const files = sources.filter((path) => /interface ErrorCodes \{/.test(readText(path)));
  const literals = (path: string) => [...readText(path).matchAll(/"([a-z]+(?:_[a-z]+)+)"/g)].map(([, code]) => code as string);
  return new Map([
    ...files.map((path) => [packageOf(path), new Set(literals(path))] as const),
    ["packages/api", new Set(Object.keys(ERROR_CATALOG))],
  ]);
}

const declared = declaredCodes();

test("a package throws its own error codes, and those of base", () => {
  const foreign = sources.flatMap((path) => {
    const known = new Set([...(declared.get(packageOf(path)) ?? []), ...(declared.get("packages/base") ?? [])]);
    const thrown = [...readText(path).matchAll(/new PlatformError\(\s*"(\w+)"/g)].map(([, code]) => code as string);
    return thrown.filter((code) => !known.has(code)).map((code) => `${path}: ${code}`);
  });
  expect(foreign).toEqual([]);
});

test("every error code that a package declares is used in that package", () => {
  const unused = [...declared].flatMap(([folder, codes]) => {
    const texts = sources.filter((path) => path.startsWith(`${folder}/`) && !/interface ErrorCodes \{/.test(readText(path))).map(readText);
    return [...codes].filter((code) => !texts.some((text) => text.includes(`"${code}"`))).map((code) => `${folder}: ${code}`);
  });
  expect(unused).toEqual([]);
});
