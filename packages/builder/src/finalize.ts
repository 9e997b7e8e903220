// What every template gets at the end: the user `user` with sudo, its home directory, /code, and directories below /usr/local that everybody
// can install into.

import type { StartCommand } from "@skerry/wire/node";
import { BuildFailure } from "./build-failure.ts";
import type { BuildSandbox } from "./build-host.ts";
import type { BuildState } from "./build-state.ts";
import { commit } from "./execute-step.ts";
import { keyOf } from "./keys.ts";
import { runScript } from "./steps/commands.ts";
import { CREATE_USER } from "./steps/create-user.ts";

export const DEFAULT_USER = "user";

/** Files that are larger keep their owner: a change of the owner stores a copy of the whole file in the template. */
const MOST_COPIED_KIB = 65_536;

/** Changes nothing that is as it should be: each change copies the file into a new layer. */
const CONFIGURE = `set -e
shopt -s nullglob dotglob
group=$(id -g user)
[ -d /home/user ] || mkdir -p /home/user
for entry in /etc/skel/*; do
  target=/home/user/\${entry##*/}
  [ -e "$target" ] || [ -L "$target" ] || cp -a "$entry" "$target"
done
if command -v find > /dev/null; then
  find /home/user -xdev \\( ! -user user -o ! -group "$group" \\) ! \\( -type f -size +${MOST_COPIED_KIB}k \\) -exec chown -h "user:$group" {} +
  find /home/user -xdev \\( ! -user user -o ! -group "$group" \\) -print
  [ ! -d /usr/local ] || find /usr/local -xdev -type d ! -perm 0777 -exec chmod 0777 {} +
else
  chown user:"$group" /home/user
fi
[ -d /code ] || mkdir /code
[ "$(stat -c %a /code)" = 777 ] || chmod 0777 /code
`;

/** Configures the files of the build, or takes them from the cache. Throws BuildFailure. */
export async function finalizeFiles(build: BuildState): Promise<void> {
  const { deps, spec } = build;
  const keyFor = () => keyOf("finalize", build.layers, CREATE_USER, CONFIGURE);
  const key = keyFor();
  const cached = await build.findCached(key);
  build.log("info", "finalize", `${cached ? "CACHED " : ""}[finalize] Finalizing template build [${key}]`);
  if (cached) {
    await build.moveTo({ layers: cached.layers, context: build.context });
    return;
  }
  deps.signal.throwIfAborted();
  const sandbox = await deps.host.startSandbox(build.sandboxOptions());
  try {
    await configure(build, sandbox);
    await build.moveTo({ layers: await commit(build, sandbox), context: build.context });
  } finally {
    await sandbox.discard();
  }
  await deps.cache.put(spec.cacheScope, key, build);
  // What is configured already needs no sandbox: a template with the same files that is based on this one.
  if (keyFor() !== key) await deps.cache.put(spec.cacheScope, keyFor(), build);
}

async function configure(build: BuildState, sandbox: BuildSandbox): Promise<void> {
  const tools = {
    signal: build.deps.signal,
    log: (level: "debug" | "info" | "warn" | "error", message: string) => build.log(level, "finalize", `[finalize] ${message}`),
  };
  const user = await runScript(tools, sandbox, CREATE_USER, { args: [DEFAULT_USER, "sudo"] });
  const { exitCode, status, output } =
    user.exitCode === 0 ? await runScript(tools, sandbox, CONFIGURE, { args: [] }) : { ...user, output: "" };
  if (exitCode !== 0) throw new BuildFailure(`configuration script failed: ${status}`, { step: "finalize" });
  for (const path of output.split("\n").filter(Boolean).slice(0, 20)) {
    tools.log("warn", `${path} is large and keeps its owner: copy it as the user "user" to avoid that`);
  }
}

/** The start and ready commands of the template: its own, or those of the template that it is based on. */
export function startCommandOf(
  { spec, context }: Pick<BuildState, "spec" | "context">,
  inherited: StartCommand | undefined,
): Omit<StartCommand, "$typeName"> | undefined {
  const { startCommand: command = "", readyCommand: ready = "" } = spec;
  if (command === "" && ready === "") return inherited;
  return { command, ready: ready === "" ? READY_BY_DEFAULT : ready, ...context, env: { ...context.env } };
}

const READY_BY_DEFAULT = "sleep 20";
