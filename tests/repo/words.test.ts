import { expect, test } from "vitest";
import { readText, repositoryFiles } from "./repository.ts";

/** The repository must not depend on its developers' machines: neither on their files nor on their package registry. */
const REFUSED: readonly { readonly text: RegExp; readonly why: string; readonly except?: readonly string[] }[] = [
  { text: /\.\.\/shared\b/, why: "a folder outside the repository" },
  { text: /\/work\/(main|shared)\b/, why: "a path of one machine" },
  { text: /\/tmp\/w\//, why: "a path of one machine" },
  { text: /\bbrief\.md\b/, why: "a file outside the repository" },
  { text: /registry\.npmjs\.org|registry\.yarnpkg\.com/, why: "a package registry: npm knows which one to use" },
  { text: /\bpypi\.org|pythonhosted\.org/, why: "a package registry: pip knows which one to use" },
  {
    text: /proxy\.golang\.org/,
    why: "a package registry: Go's own setting says which one to use",
    // Go's documented default, for a machine without Go.
    except: ["packages/setup/src/runsc/module-proxies.ts", "packages/setup/src/runsc/module-proxies.test.ts"],
  },
];

const SELF = "tests/repo/words.test.ts";
const BINARY = /\.(png|jpg|ico|woff2?|gz|zst|tar)$/;

test.each(REFUSED)("no file mentions $text ($why)", ({ text, except }) => {
  const files = repositoryFiles().filter((path) => path !== SELF && !BINARY.test(path) && !except?.includes(path));
  expect(files.filter((path) => text.test(readText(path)))).toEqual([]);
});
