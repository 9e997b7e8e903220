import { posix } from "node:path";
import { asError } from "@skerry/base";
import type { StepContext } from "../context.ts";
import { runScript } from "./commands.ts";
import { BadSubstitution, variablesIn } from "./expand.ts";
import { type PlanStep, StepFailure, type StepTools, variablesKey } from "./step.ts";
import { expandAll } from "./variables.ts";

/** Makes a directory with its parents. Only the topmost new one, with what is in it, gets the owner. Prints whether there is something new. */
const MAKE_DIRECTORY = `set -e
if [ -d "$1" ]; then cd "$1"; exit; fi
top=$1
while above=\${top%/*}; [ -n "$above" ] && [ ! -d "$above" ]; do top=$above; done
mkdir -p "$1"
chown -R "$2:$(id -g "$2")" "$top"
echo created`;

/** `[path]`; a relative one is below the directory of the context. */
export const planWorkdir: PlanStep = ({ args: [path = ""] }, context) => {
  if (path === "") throw new StepFailure("WORKDIR requires a path argument");
  const hasVariables = path.includes("$");
  return {
    inputs: [path, context.user, context.workdir, hasVariables ? variablesKey(context.env) : null],
    resume: ({ workdir }) => ({ ...context, workdir }),
    async run(tools) {
      const workdir = await resolvePath(path, context, tools);
      const { exitCode, status, output } = await runScript(tools, await tools.sandbox(), MAKE_DIRECTORY, { args: [workdir, context.user] });
      if (exitCode !== 0) throw new StepFailure(`failed to create workdir: ${status}`);
      return { context: { ...context, workdir }, wrote: output.includes("created") };
    },
  };
};

async function resolvePath(path: string, context: StepContext, tools: StepTools): Promise<string> {
  try {
    const [expanded = ""] = variablesIn(path).size === 0 ? [path] : await expandAll([path], context, tools, context.user);
    return posix.resolve(context.workdir === "" ? "/" : context.workdir, expanded);
  } catch (error) {
    if (!(error instanceof BadSubstitution)) throw asError(error);
    throw new StepFailure(`failed to create workdir: ${error.message}`, { cause: error });
  }
}
