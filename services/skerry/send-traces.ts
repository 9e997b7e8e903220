import type { Logger } from "@skerry/base";
import { startTracing } from "@skerry/telemetry";
import type { ServeConfig } from "./config.ts";

/** Sends traces if the configuration names a receiver. Returns a function that ends it. */
export async function sendTraces(
  { traces, roles }: Pick<ServeConfig, "traces" | "roles">,
  { version, logger }: { readonly version: string; readonly logger: Logger },
): Promise<() => Promise<void>> {
  if (!traces) return async () => {};
  return await startTracing({ ...traces, version, roles: [...roles], logger: logger.child({ part: "traces" }) });
}
