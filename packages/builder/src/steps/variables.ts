import type { StepContext } from "../context.ts";
import { loginVariables } from "./commands.ts";
import { expandVariables, variablesIn } from "./expand.ts";
import type { StepTools } from "./step.ts";

/**
 * Expands texts with the variables of the context, and with those of the user's login shell where the context has none, as in `${PATH}:/x`.
 * Starts a sandbox only if it needs that shell. Throws BadSubstitution.
 */
export async function expandAll(texts: readonly string[], context: StepContext, tools: StepTools, user: string): Promise<string[]> {
  const unknown = new Set(texts.flatMap((text) => [...variablesIn(text)]).filter((name) => !Object.hasOwn(context.env, name)));
  const login = unknown.size === 0 ? {} : await loginVariables(tools, user, [...unknown]);
  const all = new Map([...Object.entries(login), ...Object.entries(context.env)]);
  return texts.map((text) => expandVariables(text, (name) => all.get(name)));
}
