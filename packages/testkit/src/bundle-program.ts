import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { build, type Plugin } from "esbuild";
import { testCacheDir } from "./test-cache.ts";

const KEPT_MS = 24 * 3_600_000;

const ROOT = join(import.meta.dirname, "../../..");

/**
 * Bundles a program of the tests into one file, for tests that start it many times, and returns its path. Loading the hundreds of modules of a
 * node or an API takes a second of CPU time, and the bundle a fifth of that. The file is named after the state of all sources, so that test
 * processes share it: bundling takes two seconds of CPU time. The modules `before` run first.
 */
export async function bundleProgram(entry: string, before: readonly string[] = []): Promise<string> {
  const dir = join(process.getuid?.() === 0 ? testCacheDir() : join(homedir(), ".cache/skerry-test"), "programs");
  const key = createHash("sha256").update(JSON.stringify([entry, before, stateOfSources()]));
  const path = join(dir, `${key.digest("hex").slice(0, 16)}.mjs`);
  if (existsSync(path)) return path;
  const { outputFiles } = await build({
    entryPoints: [entry],
    inject: [...before],
    write: false,
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node24",
    // CommonJS packages in the bundle still load modules of Node.js with `require`. Sources may import `createRequire` themselves.
    banner: { js: `import { createRequire as requireFrom } from "node:module"; const require = requireFrom(import.meta.url);` },
    logLevel: "error",
    plugins: [nativeAddon, ownFolders],
  });
  const [file] = outputFiles;
  if (!file) throw new Error(`${entry} could not be bundled`);
  mkdirSync(dir, { recursive: true });
  removeOld(dir);
  writeFileSync(`${path}.${process.pid}`, file.contents);
  renameSync(`${path}.${process.pid}`, path);
  return path;
}

/** Path, size and time of every source that could be in a bundle. */
function stateOfSources(): string[] {
  const installed = join(ROOT, "node_modules/.package-lock.json");
  const sources = ["packages", "services", "tests"].flatMap((name) =>
    readdirSync(join(ROOT, name), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && /\.(ts|json)$/.test(entry.name))
      .map((entry) => join(entry.parentPath, entry.name)),
  );
  return [installed, ...sources].sort().map((path) => {
    const { size, mtimeMs } = statSync(path);
    return `${path} ${size} ${mtimeMs}`;
  });
}

function removeOld(dir: string): void {
  for (const name of readdirSync(dir)) {
    const path = join(dir, name);
    if (Date.now() - statSync(path).mtimeMs > KEPT_MS) rmSync(path, { force: true });
  }
}

/** Not bundled: koffi finds its addon relative to its own path, and the native client of pg is not installed. */
const nativeAddon: Plugin = {
  name: "native-addon",
  setup(plugin) {
    const { resolve } = createRequire(import.meta.url);
    plugin.onResolve({ filter: /^koffi$/ }, () => ({ path: resolve("koffi"), external: true }));
    plugin.onResolve({ filter: /^pg-native$/ }, ({ path }) => ({ path, external: true }));
  },
};

/** Sources find templates and other programs relative to themselves, so they keep their own folders in the bundle. */
const ownFolders: Plugin = {
  name: "own-folders",
  setup(plugin) {
    plugin.onLoad({ filter: /\.ts$/ }, ({ path }) => {
      const meta: Record<string, string> = { dirname: dirname(path), url: pathToFileURL(path).href };
      const source = readFileSync(path, "utf8");
      return {
        loader: "ts",
        contents: source.replace(/\bimport\.meta\.(dirname|url)\b/g, (_, name: string) => JSON.stringify(meta[name])),
      };
    });
  },
};
