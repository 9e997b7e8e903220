import { inject } from "vitest";
import type { RunServicesProtocol } from "./protocol.ts";

/** Asks the services that this run's test files share. */
export async function callRunServices<Path extends keyof RunServicesProtocol>(
  path: Path,
  request: RunServicesProtocol[Path]["request"],
): Promise<RunServicesProtocol[Path]["response"]> {
  const response = await fetch(inject("runServices") + path, { method: "POST", body: JSON.stringify(request) });
  if (!response.ok) throw new Error(`${path} of the run services answered ${response.status}: ${await response.text()}`);
  return (await response.json()) as RunServicesProtocol[Path]["response"];
}
