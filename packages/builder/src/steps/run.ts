import { asError } from "@skerry/base";
import { cut } from "../log/cut.ts";
import { StepOutput } from "../log/step-output.ts";
import { COMMAND_TIMEOUT_MS, refusalOf } from "./commands.ts";
import { loginShell } from "./login-shell.ts";
import { type PlanStep, StepFailure, variablesKey } from "./step.ts";

/** Of a command, in the reason for its failure. */
const MOST_SHOWN = 4_000;

/** `[command]` or `[command, user]`. The user is that of this command only. */
export const planRun: PlanStep = ({ args: [command = "", asUser = ""] }, context) => {
  if (command === "") throw new StepFailure("RUN requires command argument");
  const user = asUser === "" ? context.user : asUser;
  const shown = cut(command, MOST_SHOWN);
  return {
    inputs: [command, user, context.workdir, variablesKey(context.env)],
    resume: () => context,
    async run(tools) {
      const output = new StepOutput((message) => tools.log("info", message));
      const { argv, env } = loginShell(command, context.env);
      try {
        const sandbox = await tools.sandbox();
        const { workdir } = context;
        const running = { argv, env, user, workdir, timeoutMs: COMMAND_TIMEOUT_MS, signal: tools.signal, onLine: output.add };
        const { exitCode, status } = await sandbox.run(running);
        output.end();
        if (exitCode !== 0) throw new StepFailure(`failed to run command '${shown}': ${status}`);
      } catch (error) {
        const refusal = refusalOf(error);
        if (refusal === undefined) throw asError(error);
        throw new StepFailure(`failed to run command '${shown}': command failed: ${refusal}`, { cause: error });
      }
      return { context, wrote: true };
    },
  };
};
