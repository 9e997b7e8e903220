import type { IncomingHttpHeaders } from "node:http";
import { PlatformError } from "@skerry/base";
import type { Team } from "@skerry/store";
import { isUuid, parseSandboxId, type SandboxId } from "@skerry/wire";
import { invalid, validationError } from "../../errors.ts";
import type { RepeatableRequest } from "../../idempotency/idempotent-requests.ts";
import type { Caller } from "../../keys/caller.ts";
import type { Acting } from "../../sandboxes/deps.ts";
import type { OperationRequest } from "../operation.ts";

/** The caller's team. Throws for an operation that takes no team credentials. */
export function teamOf(caller: Caller): Team {
  if (caller.kind === "team") return caller.team;
  throw new PlatformError("internal", "an operation without a team asked for one");
}

/** The calling user's id. Throws for an operation that takes no access tokens. */
export function userOf(caller: Caller): string {
  if (caller.kind === "user") return caller.userId;
  throw new PlatformError("internal", "an operation without a user asked for one");
}

/** The team in the header `X-Team-ID`, in which a user with several teams names one. */
export function teamHeaderOf(headers: IncomingHttpHeaders): string | undefined {
  const id = headers["x-team-id"];
  if (id === undefined) return undefined;
  if (typeof id !== "string" || !isUuid(id)) throw invalid("Invalid team ID");
  return id.toLowerCase();
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
