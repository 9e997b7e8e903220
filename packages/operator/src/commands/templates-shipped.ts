import { OperatorError } from "@skerry/setup/folder";
import type { OperatorContext } from "../context.ts";
import { PlatformClient } from "../templates/platform-client.ts";
import { readShipped, shippedNames } from "../templates/shipped.ts";
import { type BuildOptions, buildTemplate } from "./templates-build.ts";

export interface BuildCommandOptions extends Omit<BuildOptions, "fromTemplate"> {
  readonly shipped?: boolean;
}

/** Builds the Dockerfile of a directory, a template that ships, or all that ship. */
export async function buildTemplates(
  context: OperatorContext,
  given: { readonly name: string | undefined; readonly directory: string | undefined; readonly options: BuildCommandOptions },
): Promise<void> {
  const { name, directory, options } = given;
  const names = shippedNames();
  if (options.shipped) {
    if (name !== undefined) throw usage("--shipped takes no name", "To build one of them, leave out --shipped.");
    for (const shipped of names) await buildShipped(context, shipped, options);
    return;
  }
  if (name === undefined) throw usage("there is no name", "Give the template a name, or build all that ship with --shipped.");
  if (directory === undefined && names.includes(name)) await buildShipped(context, name, options);
  else await buildTemplate(context, { name, directory: directory ?? ".", options });
}

/** The template is for all teams, by its name alone. */
async function buildShipped(context: OperatorContext, name: string, options: BuildCommandOptions): Promise<void> {
  const { directory, fromTemplate, cpuCount, memoryMB, readyCommand } = await readShipped(name);
  const templateId = await buildTemplate(context, {
    name,
    directory,
    options: {
      cpuCount: String(cpuCount),
      memoryMb: String(memoryMB),
      ...(readyCommand !== undefined && { readyCmd: readyCommand }),
      ...options,
      fromTemplate,
    },
  });
  const client = await PlatformClient.open(context, options.data);
  await client.call("PATCH", `/templates/${templateId}`, { body: { public: true } });
  process.stderr.write(`All teams can use ${name}.\n`);
}

const usage = (message: string, hint: string) => new OperatorError(message, { exit: "usage", hints: [hint] });
