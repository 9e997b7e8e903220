import { build, type Plugin } from "esbuild";

/** The path of koffi's addon, relative to agent.js. */
export const KOFFI_ADDON = "native/koffi.node";

/**
 * Bundles the agent into one minified CommonJS file. CommonJS starts faster than ES modules, because nothing has to be linked.
 * Dynamically imported code is evaluated on first use.
 */
export async function bundleAgent(entry: string): Promise<Uint8Array> {
  const result = await build({
    entryPoints: [entry],
    bundle: true,
    write: false,
    minify: true,
    platform: "node",
    format: "cjs",
    target: "node24",
    legalComments: "none",
    logLevel: "silent",
    plugins: [directKoffi],
  });
  const [file] = result.outputFiles;
  if (!file) throw new Error("esbuild produced no output");
  return file.contents;
}

// koffi's own loader would search for the addon, and read an ELF header to find out which libc is in use. In the tree the addon has
// a fixed path and matches the tree's own libc.
const directKoffi: Plugin = {
  name: "koffi",
  setup(plugin) {
    plugin.onResolve({ filter: /^koffi$/ }, () => ({ path: "koffi", namespace: "addon" }));
    plugin.onLoad({ filter: /.*/, namespace: "addon" }, () => ({
      contents: `module.exports = require(__dirname + "/${KOFFI_ADDON}");`,
      loader: "js",
    }));
  },
};
