// What became of a request whose process is gone, told by what it made. What was half made is ended here, so that
// "nothing" stays true.

import type { Sandbox } from "@skerry/store";
import { PLATFORM } from "../../sandboxes/lifecycle/moves.ts";
import type { ShownSandbox } from "../../sandboxes/service.ts";
import type { OperationResponse } from "../operation.ts";
import { encodeSandbox } from "../output/encode-sandbox.ts";
import { encodeSnapshot } from "../output/encode-snapshot.ts";
import type { ApiServices } from "../services.ts";

export async function recoverCreate(services: ApiServices, [id = ""]: readonly string[]): Promise<OperationResponse | undefined> {
  const sandbox = await findMade(services, id);
  return sandbox && { status: 201, body: encodeSandbox(services, sandbox) };
}

/** Those that were not up when the process ended are failures of their own, as in any other answer. */
export async function recoverFork(services: ApiServices, ids: readonly string[]): Promise<OperationResponse | undefined> {
  const made = await Promise.all(ids.map((id) => findMade(services, id)));
  if (made.every((sandbox) => sandbox === undefined)) return undefined;
  const lost = { code: 500, message: "Failed to place sandbox: the platform was restarted while it started" };
  return { status: 201, body: made.map((sandbox) => (sandbox ? { sandbox: encodeSandbox(services, sandbox) } : { error: lost })) };
}

export async function recoverSnapshot(services: ApiServices, [buildId = ""]: readonly string[]): Promise<OperationResponse | undefined> {
  const snapshot = await services.store.snapshots.findOfBuild(buildId);
  return snapshot && { status: 201, body: encodeSnapshot(snapshot) };
}

/** The sandbox, if it ever ran. */
async function findMade(services: ApiServices, id: string): Promise<ShownSandbox | undefined> {
  const sandbox: Sandbox | undefined = await services.store.sandboxes.find(id);
  if (sandbox?.state === "starting") {
    const begun = await services.kills.begin(sandbox, "abandon", { reason: "abandoned", actor: PLATFORM });
    if (begun.kind === "moved") services.kills.finishInBackground(sandbox);
    return begun.kind === "stale" ? await findMade(services, id) : undefined;
  }
  return sandbox?.startedAt == null ? undefined : (sandbox as ShownSandbox);
}
