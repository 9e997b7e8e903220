import { expect, test } from "vitest";
import { parseDockerIgnore } from "./docker-ignore.ts";

test.each([
  ["node_modules", ["node_modules", "node_modules/a/b"], ["a/node_modules", "node_modules2"]],
  ["**/node_modules", ["node_modules/a", "a/b/node_modules/c"], ["a/node_modules2"]],
  ["*.md", ["a.md"], ["a/b.md", "amd"]],
  ["**/*.md", ["a.md", "a/b/c.md"], ["a.mdx"]],
  ["/a/", ["a", "a/b"], ["b/a"]],
  ["./a/../b", ["b"], ["a"]],
  ["a/*/c", ["a/b/c", "a/b/c/d"], ["a/c", "a/b/b/c"]],
  ["a/**", ["a/b", "a/b/c"], ["a", "b"]],
  ["a/**/z", ["a/z", "a/b/c/z"], ["az"]],
  ["?.txt", ["a.txt", "💥.txt"], ["ab.txt", ".txt"]],
  ["[a-c]x", ["ax", "cx"], ["dx", "-x"]],
  ["[^a-c]x", ["dx"], ["ax", "/x"]],
  ["a\\*b", ["a*b"], ["axb"]],
  ["[", ["["], ["a"]],
  ["[z-a]", [], ["z", "a"]],
  ["a.b+(c)|{d}$", ["a.b+(c)|{d}$"], ["aXb+(c)|{d}$"]],
  ["*", ["a", "a/b", ".c"], []],
  ["*\n!a", ["b", "b/a"], ["a", "a/b"]],
  ["a\n!a/b\na/b/c", ["a/x", "a/b/c"], ["a/b", "a/b/d"]],
  ["# a\n  b  \n\n", ["b"], ["# a", "a"]],
  ["\uFEFFa\r\nb\r\n", ["a", "b"], ["c"]],
  ["!a", [], ["a"]],
  [".", [], ["a"]],
  ["..", [], ["a"]],
])("%j leaves out the right paths", (text, ignored, kept) => {
  const { ignores } = parseDockerIgnore(text);
  expect([...ignored, ...kept].filter(ignores)).toEqual(ignored);
});
