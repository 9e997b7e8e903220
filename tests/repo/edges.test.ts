import { readdirSync } from "node:fs";
import { join, posix } from "node:path";
import { describe, expect, test } from "vitest";
import edges from "./edges.json" with { type: "json" };
import { importsOf, isTest, isTypeScript, ROOT, readText, repositoryFiles } from "./repository.ts";

type Group = "packages" | "services";
const groups: [Group, Record<string, string[]>][] = [
  ["packages", edges.packages],
  ["services", edges.services],
];

function ownDependencies(manifestPath: string): string[] {
  const manifest = JSON.parse(readText(manifestPath)) as { dependencies?: Record<string, string> };
  return Object.keys(manifest.dependencies ?? {})
    .filter((name) => name.startsWith("@skerry/"))
    .map((name) => name.slice("@skerry/".length))
    .sort();
}

describe.each(groups)("%s", (group, allowed) => {
  test("are exactly those of the table", () => {
    const folders = readdirSync(join(ROOT, group), { withFileTypes: true }).filter((entry) => entry.isDirectory());
    expect(folders.map((entry) => entry.name).sort()).toEqual(Object.keys(allowed).sort());
  });

  test.each(Object.entries(allowed))("%s depends on exactly what the table allows", (name, dependencies) => {
    expect(ownDependencies(`${group}/${name}/package.json`)).toEqual([...dependencies].sort());
  });
});

test("dependencies point one way", () => {
  const open = new Set<string>();
  const done = new Set<string>();
  const visit = (name: string): void => {
    if (done.has(name)) return;
    if (open.has(name)) throw new Error(`${name} depends on itself by way of others`);
    open.add(name);
    for (const next of (edges.packages as Record<string, string[]>)[name] ?? []) visit(next);
    open.delete(name);
    done.add(name);
  };
  for (const name of Object.keys(edges.packages)) visit(name);
});

test("privileged and network-facing packages never meet, except where services put them together", () => {
  const privileged = ["layers", "runtime", "node"];
  for (const name of ["edge", "api", "agent", "store"] as const) {
    expect(edges.packages[name].filter((dependency) => privileged.includes(dependency))).toEqual([]);
  }
  for (const name of ["layers", "runtime", "node"] as const) {
    expect(edges.packages[name].filter((dependency) => ["edge", "api", "store"].includes(dependency))).toEqual([]);
  }
});

const sources = repositoryFiles().filter((path) => /^(packages|services)\//.test(path) && isTypeScript(path) && !isTest(path));

test("files import other packages by name, and only those that their manifest lists", () => {
  const wrong: string[] = [];
  for (const path of sources) {
    const [group, name] = path.split("/") as [Group, string];
    const allowed = (edges[group] as Record<string, string[]>)[name] ?? [];
    for (const specifier of importsOf(readText(path))) {
      if (specifier.startsWith(".") && !posix.join(posix.dirname(path), specifier).startsWith(`${group}/${name}/`)) {
        wrong.push(`${path} leaves its package: ${specifier}`);
      }
      const [, dependency, ...deep] = /^@skerry\//.test(specifier) ? specifier.split("/") : [];
      if (dependency === undefined) continue;
      if (deep.includes("src") || deep.includes("test")) wrong.push(`${path} reaches into ${specifier}`);
      if (!allowed.includes(dependency)) wrong.push(`${path} imports ${specifier}, which the table does not allow`);
    }
  }
  expect(wrong).toEqual([]);
});

test("tests use other packages by what those export, never by their source files", () => {
  const tests = repositoryFiles().filter(
    (path) => /^(packages|services|tests)\//.test(path) && isTypeScript(path) && !sources.includes(path),
  );
  expect(tests.length).toBeGreaterThan(150);
  const wrong: string[] = [];
  for (const path of tests) {
    const own = /^packages\/[^/]+\//.exec(path)?.[0];
    for (const specifier of importsOf(readText(path))) {
      const target = specifier.startsWith(".") ? posix.join(posix.dirname(path), specifier) : specifier.replace("@skerry/", "packages/");
      if (/^packages\/[^/]+\/(src|test)\//.test(target) && !(own && target.startsWith(own))) wrong.push(`${path} imports ${specifier}`);
    }
  }
  expect(wrong).toEqual([]);
});

test("wire runs everywhere: no Node.js module in it", () => {
  const files = sources.filter((path) => path.startsWith("packages/wire/src/"));
  expect(files.filter((path) => importsOf(readText(path)).some((name) => name.startsWith("node:")))).toEqual([]);
});

test("what a node keeps in its folder is known to the node alone", () => {
  const outside = sources.filter((path) => /^packages\/(operator|setup|test-runner)\/src\//.test(path));
  const below = /["'`/]node\/|"(sandbox|image|cluster)\.json"/;
  expect(outside.length).toBeGreaterThan(60);
  expect(outside.filter((path) => below.test(readText(path).replace(/from "[^"]+"/g, "")))).toEqual([]);
});

test("HTTP handlers of the API reach the database through services only", () => {
  const files = sources.filter((path) => path.startsWith("packages/api/src/http/"));
  expect(files.length).toBeGreaterThan(30);
  const wrong = files.filter((path) => {
    const text = readText(path);
    const ofStore = [...text.matchAll(/^import ([^;]*?) from "@skerry\/store";$/gms)].map(([, what = ""]) => what);
    return ofStore.some((what) => !what.startsWith("type ") || /\bStore\b|Repository/.test(what)) || /[^/-]\bstore\b/.test(text);
  });
  expect(wrong).toEqual([]);
});
