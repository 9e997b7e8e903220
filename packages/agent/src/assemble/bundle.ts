import { build, type Plugin } from "esbuild";

/** Where the tree keeps koffi's addon, seen from agent.js. */
export const KOFFI_ADDON = "native/koffi.node";

/**
 * The agent as one minified CommonJS file: that form starts faster than modules, because nothing has to be linked, and
 * what is imported dynamically stays unevaluated until it is used.
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
  if (!file) throw new Error("esbuild made no output");
  return file.contents;
}

// koffi's own loader would first search for the addon and read our ELF header to find out which libc this is. The tree
// has it at a fixed place, for the libc beside it.
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
