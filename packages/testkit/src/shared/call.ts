import { inject } from "vitest";
import type { SharedServicesProtocol } from "./protocol.ts";

/** Asks the services that this run's test files share. */
export async function callSharedServices<Path extends keyof SharedServicesProtocol>(
  path: Path,
  request: SharedServicesProtocol[Path]["request"],
): Promise<SharedServicesProtocol[Path]["response"]> {
  const response = await fetch(inject("sharedServices") + path, { method: "POST", body: JSON.stringify(request) });
  if (!response.ok) throw new Error(`${path} of the shared services answered ${response.status}: ${await response.text()}`);
  return (await response.json()) as SharedServicesProtocol[Path]["response"];
}
