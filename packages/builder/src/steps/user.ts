import { asError } from "@skerry/base";
import { runScript } from "./commands.ts";
import { CREATE_USER } from "./create-user.ts";
import { BadSubstitution } from "./expand.ts";
import { type PlanStep, StepFailure, variablesKey } from "./step.ts";
import { expandAll } from "./variables.ts";

/** `[name]`, or `[name, "true"]` for a user with sudo. Of `name:group`, only the name counts. */
export const planUser: PlanStep = ({ args: [name = "", sudo = ""] }, context) => {
  if (name === "") throw new StepFailure("USER requires a username argument");
  return {
    inputs: [name, sudo, name.includes("$") ? variablesKey(context.env) : null],
    resume: ({ user }) => ({ ...context, user }),
    async run(tools) {
      const [wanted = ""] = await expandAll([name], context, tools, "root").catch(asStepFailure);
      const [user = "", group] = wanted.split(":");
      if (!/^[^\s/-][^\s/]*$/.test(user)) throw new StepFailure(`failed to create user: invalid username: '${user}'`);
      if (group !== undefined) tools.log("warn", `USER ${wanted}: the group is ignored, commands run with the groups of ${user}`);
      const script = await runScript(tools, await tools.sandbox(), CREATE_USER, { args: [user, sudo === "true" ? "sudo" : ""] });
      if (script.exitCode !== 0) throw new StepFailure(`failed to create user: ${script.status}`);
      const lines = script.output.trim().split("\n");
      return { context: { ...context, user: lines.at(-1) ?? user }, wrote: lines.includes("created") };
    },
  };
};

function asStepFailure(error: unknown): never {
  if (!(error instanceof BadSubstitution)) throw asError(error);
  throw new StepFailure(`failed to create user: ${error.message}`, { cause: error });
}
