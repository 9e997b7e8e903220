// Everything that the agent's tests need inside a sandbox: the tests, the packages that they use, and Vitest.

import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AGENT_ROOT, nodeArguments } from "@skerry/agent";
import { runCommand } from "@skerry/base";
import { sampleOf } from "@skerry/testkit/depth";

/** Files of packages/agent/test. The others concern this machine, or test what other tests cover on both runtimes. */
const ALL = ["access", "compose", "copy", "downloads", "filesystem", "process", "uploads", "watch", "watch-stream", "wire"];
/** The suites that depend most on the kernel. */
const IN_SAMPLE = ["filesystem", "process"];
export const AGENT_SUITES = sampleOf("the agent's test files that run inside a sandbox", ALL, (suite) => IN_SAMPLE.includes(suite));

export const AGENT_SUITES_REPORT = "/tmp/suites.json";

const REPOSITORY = join(import.meta.dirname, "../..");
const OUR_PACKAGES = ["agent", "base", "wire"];
const FOREIGN_PACKAGES = ["vitest", "@connectrpc/connect", "@connectrpc/connect-node", "@bufbuild/protobuf"];
/** Types, and tools that these tests do not run. */
const LEFT_OUT = /^@types\/|^undici-types$|^@oxc-project\/types$|^esbuild$|^@esbuild\//;

// The sandbox's Node.js is the agent's, which cannot be started by its path alone. So the tests run in threads.
const NODE = nodeArguments(process.arch === "arm64" ? "arm64" : "x64", AGENT_ROOT).join(" ");
const FILES = AGENT_SUITES.map((suite) => `packages/agent/test/${suite}.test.ts`).join(" ");
const VITEST = `${NODE} node_modules/vitest/vitest.mjs run --pool threads`;
/** Replaces the repository's configuration, which starts servers that all tests of a run share. */
const VITEST_CONFIG = `export default { test: { include: ["packages/*/test/**/*.test.ts"], testTimeout: 120_000, hookTimeout: 180_000 } };\n`;

export const AGENT_SUITES_COMMAND = `mkdir /opt/skerry && cd /opt/skerry && tar -xf /tmp/suites.tar && NO_COLOR=1 ${VITEST} --reporter json --outputFile ${AGENT_SUITES_REPORT} ${FILES}`;

/** Packs a tar of a small repository. */
export async function packAgentSuites(): Promise<Uint8Array<ArrayBuffer>> {
  const foreign = [...withDependencies(FOREIGN_PACKAGES)].map((name) => `node_modules/${name}`);
  const ours = OUR_PACKAGES.flatMap((name) => [`node_modules/@skerry/${name}`, `packages/${name}`]);
  const paths = ["package.json", "tsconfig.json", ...ours, ...foreign];
  const folder = mkdtempSync(join(tmpdir(), "skerry-suites-"));
  try {
    const file = join(folder, "suites.tar");
    writeFileSync(join(folder, "vitest.config.js"), VITEST_CONFIG);
    await runCommand("tar", ["-cf", file, "-C", folder, "vitest.config.js", "-C", REPOSITORY, ...paths], { timeoutMs: 60_000 });
    return new Uint8Array(readFileSync(file));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** The names of the packages and of all their installed dependencies. */
function withDependencies(names: readonly string[]): Set<string> {
  const found = new Set<string>();
  const visit = (name: string): void => {
    const manifest = join(REPOSITORY, "node_modules", name, "package.json");
    if (found.has(name) || LEFT_OUT.test(name) || !existsSync(manifest)) return;
    found.add(name);
    const { dependencies, optionalDependencies, peerDependencies } = JSON.parse(readFileSync(manifest, "utf8")) as Record<string, object>;
    for (const each of [dependencies, optionalDependencies, peerDependencies])
      for (const dependency of Object.keys(each ?? {})) visit(dependency);
  };
  for (const name of names) visit(name);
  return found;
}
