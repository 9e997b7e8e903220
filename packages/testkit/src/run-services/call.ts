import { inject } from "vitest";
import type { RunServicesProtocol } from "./protocol.ts";

/** Calls a shared service of the test run. */
export async function callRunServices<Path extends keyof RunServicesProtocol>(
  path: Path,
  request: RunServicesProtocol[Path]["request"],
): Promise<RunServicesProtocol[Path]["response"]> {
  const response = await fetch(inject("runServices") + path, { method: "POST", body: JSON.stringify(request) });
  if (!response.ok) throw new Error(`${path} of the run services failed with ${response.status}: ${await response.text()}`);
  return (await response.json()) as RunServicesProtocol[Path]["response"];
}
