import { PlatformError } from "@skerry/base";
import type { Team } from "@skerry/store";
import { parseSandboxId, type SandboxId } from "@skerry/wire";
import { validationError } from "../../errors.ts";
import type { RepeatableRequest } from "../../idempotency/idempotent-requests.ts";
import type { Caller } from "../../keys/authenticate.ts";
import type { Acting } from "../../sandboxes/deps.ts";
import type { OperationRequest } from "../operation.ts";

/** The caller's team. Throws for an operation that takes no team credentials. */
export function teamOf(caller: Caller): Team {
  if (caller.kind === "team") return caller.team;
  throw new PlatformError("internal", "an operation without a team asked for one");
}

/** The caller's team, and the caller's name in the journal. */
export function actingOf(caller: Caller): Acting {
  return { teamId: teamOf(caller).id, actor: caller.kind === "team" ? caller.actor : "" };
}

/** The request as `IdempotentRequests` takes it. */
export function repeatable({
  caller,
  headers,
  signal,
}: Pick<OperationRequest<unknown, unknown, unknown>, "caller" | "headers" | "signal">): RepeatableRequest {
  return { teamId: teamOf(caller).id, key: headers["idempotency-key"], signal };
}

export function sandboxIdOf(params: { readonly sandboxID: string }): SandboxId {
  const id = parseSandboxId(params.sandboxID);
  if (!id) throw validationError("Invalid sandbox ID");
  return id;
}
