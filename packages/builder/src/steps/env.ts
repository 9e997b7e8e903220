import { asError } from "@skerry/base";
import { BadSubstitution } from "./expand.ts";
import { type PlanStep, StepFailure, variablesKey } from "./step.ts";
import { expandAll } from "./variables.ts";

/** `[key, value, …]`, also of ARG. No value sees the other keys of the same step. */
export const planEnv: PlanStep = ({ type, args }, context) => {
  if (args.length === 0) throw new StepFailure(`${type} does not support passing no arguments`);
  if (args.length % 2 !== 0) throw new StepFailure(`${type} requires both a key and value arguments`);
  const pairs = args.flatMap((key, index) => (index % 2 === 0 ? [[key, args[index + 1] ?? ""] as const] : []));
  const invalid = pairs.find(([key]) => key === "" || /[=\0]/.test(key));
  if (invalid) throw new StepFailure(`failed to evaluate environment variable ${invalid[0]}: a name has no "=" in it and is not empty`);
  const keys = pairs.map(([key]) => key);
  return {
    inputs: [args, variablesKey(context.env)],
    resume: ({ env }) => ({ ...context, env }),
    async run(tools) {
      const values: string[] = [];
      for (const [key, value] of pairs) {
        try {
          values.push(...(await expandAll([value], context, tools, "root")));
        } catch (error) {
          if (!(error instanceof BadSubstitution || error instanceof StepFailure)) throw asError(error);
          throw new StepFailure(`failed to evaluate environment variable ${key}: ${error.message}`, { cause: error });
        }
      }
      const env = { ...context.env, ...Object.fromEntries(keys.map((key, index) => [key, values[index] ?? ""])) };
      return { context: { ...context, env }, wrote: false };
    },
  };
};
