// Keys that reach only sandboxes with certain metadata. Metadata never changes, so a sandbox that was found to have it keeps it.

import { publicError } from "../../errors.ts";
import type { Caller } from "../../keys/caller.ts";
import type { Operation } from "../operation.ts";
import type { ApiServices } from "../services.ts";
import { sandboxIdOf } from "./request-values.ts";

type Metadata = Readonly<Record<string, string>>;

/** The metadata of the sandboxes that the caller reaches; undefined when the caller reaches all of the team. */
export function limitOf(caller: Caller): Metadata | undefined {
  return caller.kind === "team" ? caller.sandboxMetadata : undefined;
}

/**
 * Throws before an operation that would reach other sandboxes: for the sandbox in its path what is thrown for an unknown one, and for operations
 * on several sandboxes unless they keep to the metadata themselves.
 */
export async function keepToMetadata(
  services: ApiServices,
  { caller, operation, params }: { caller: Caller; operation: Operation; params: unknown },
): Promise<void> {
  const limit = limitOf(caller);
  if (caller.kind !== "team" || !limit) return;
  if (operation.path.includes("{sandboxID}")) {
    await services.sandboxes.assertMetadata(caller.team.id, sandboxIdOf(params as { sandboxID: string }), limit);
  } else if (/^(sandboxes|events|team):/.test(operation.scope) && operation.keepsToMetadata !== true) {
    throw publicError("forbidden", "The API key is limited to sandboxes with certain metadata, and this operation is not", {
      detailCode: "missing_scope",
    });
  }
}

/** The metadata of a new sandbox: the given one, with the pairs of the caller's limit. Throws when they contradict. */
export function metadataFor(caller: Caller, given: Metadata | undefined): Metadata | undefined {
  const limit = limitOf(caller);
  if (!limit) return given;
  for (const [name, value] of Object.entries(limit)) {
    if (given && Object.hasOwn(given, name) && given[name] !== value) {
      throw publicError("forbidden", `The API key is limited to sandboxes whose metadata "${name}" has another value`);
    }
  }
  return { ...given, ...limit };
}

/** The filter of a list of sandboxes, within the caller's limit. Undefined when no sandbox can match both. */
export function filterFor(caller: Caller, filter: Metadata): Metadata | undefined {
  const limit = limitOf(caller);
  if (!limit) return filter;
  const contradicts = Object.entries(limit).some(([name, value]) => Object.hasOwn(filter, name) && filter[name] !== value);
  return contradicts ? undefined : { ...filter, ...limit };
}
