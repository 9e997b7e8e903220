import { OperatorError } from "@skerry/setup/folder";
import type { OperatorContext } from "../context.ts";
import { ApiError, PlatformClient } from "../templates/platform-client.ts";

export async function deleteTemplate(context: OperatorContext, name: string, options: { data?: string }): Promise<void> {
  const client = await PlatformClient.open(context, options.data);
  try {
    await client.call("DELETE", `/templates/${encodeURIComponent(name)}`);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const hint =
      error.status === 404 ? "./skerry templates lists the names." : "Kill or wait for the sandboxes that use it, and try again.";
    throw new OperatorError(error.message, { hints: [hint], cause: error });
  }
  process.stderr.write(`The template ${name} is deleted.\n`);
}
