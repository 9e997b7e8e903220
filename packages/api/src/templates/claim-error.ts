import type { PlatformError } from "@skerry/base";
import type { ClaimedTemplate } from "@skerry/store";
import { publicError } from "../errors.ts";

/** The answer to a request for a build that does not get its template. */
export function claimError(
  refused: Exclude<ClaimedTemplate, { kind: "claimed" }>,
  asked: { readonly alias?: string; readonly templateId?: string },
): PlatformError {
  const { alias = "", templateId = "" } = asked;
  switch (refused.kind) {
    case "name-is-id":
      return publicError("conflict", `Alias '${alias}' is already used`);
    case "name-taken":
      return publicError("forbidden", `Alias '${alias}' already used`);
    case "not-found":
      return publicError("not_found", `Template ${templateId} not found`);
    case "deleted":
      return publicError("not_found", `Template '${templateId}' has been deleted and cannot be rebuilt`);
    case "foreign":
      return publicError("forbidden", `You don't have access to template '${templateId}'`);
  }
}
