// The options of a sandbox as callers see them: their names in a create request and in a sandbox's details. The rest of the API passes the
// options on as one value and does not look into it.

import type { SandboxOptions } from "@skerry/wire/node";
import { type Static, Type } from "typebox";

/** Fields of a create request. */
export const OptionFields = {
  allow_internet_access: Type.Optional(Type.Boolean({ description: "False: the sandbox cannot open connections to the outside." })),
};

/** Fields of a sandbox's details. */
export const ShownOptionFields = {
  allowInternetAccess: Type.Optional(Type.Boolean({ description: "As given in the create request; absent if it was not given." })),
};

const Options = Type.Object(OptionFields);
const ShownOptions = Type.Object(ShownOptionFields);

/** The options that a create request asks for. */
export function optionsFrom(body: Static<typeof Options>): SandboxOptions {
  return { ...(body.allow_internet_access === undefined ? {} : { allowInternetAccess: body.allow_internet_access }) };
}

/** The options of a sandbox for its details. */
export function encodeOptions(options: SandboxOptions): Static<typeof ShownOptions> {
  return { ...(options.allowInternetAccess === undefined ? {} : { allowInternetAccess: options.allowInternetAccess }) };
}
