// The options of a sandbox as callers see them: their names in a create request and in a sandbox's details. The rest of the API passes the
// options on as one value and does not look into it.

import type { SandboxOptions } from "@skerry/wire/node";
import { type Static, Type } from "typebox";
import { assertOutgoing } from "./input/outgoing-addresses.ts";

const addresses = (description: string) => Type.Optional(Type.Array(Type.String(), { description }));

/** Fields of a create request. */
export const OptionFields = {
  allow_internet_access: Type.Optional(
    Type.Boolean({ description: "False: the sandbox cannot open connections to the outside, except to what `network.allowOut` lists." }),
  ),
};

/** Fields of `network` in a create request, and of a request that changes what a sandbox may reach. */
export const OutgoingFields = {
  allowOut: addresses(
    "IPv4 addresses and prefixes that the sandbox may reach although `denyOut` denies them. Names are not built yet. At most 1000.",
  ),
  denyOut: addresses(
    "Addresses and prefixes that the sandbox may not reach. `0.0.0.0/0` is everything, of IPv4 and of IPv6. At most 1000.",
  ),
};

/** Fields of a sandbox's details. */
export const ShownOptionFields = {
  allowInternetAccess: Type.Optional(Type.Boolean({ description: "As given; absent if it was not given." })),
  network: Type.Optional(Type.Object(OutgoingFields, { description: "As given; absent if nothing of it was given." })),
};

const Options = Type.Object({ ...OptionFields, network: Type.Optional(Type.Object(OutgoingFields)) });
const ShownOptions = Type.Object(ShownOptionFields);
const Outgoing = Type.Object({ ...OptionFields, ...OutgoingFields });

/** The options that a create request asks for. Throws for options that cannot be met. */
export function optionsFrom({ network, ...body }: Static<typeof Options>): SandboxOptions {
  return withOutgoing({}, { ...network, ...body });
}

/** The options of a sandbox after a change of what it may reach. Throws for what cannot be met. An absent list is empty. */
export function withOutgoing(options: SandboxOptions, change: Static<typeof Outgoing>): SandboxOptions {
  const { allowOut: _allowed, denyOut: _denied, ...rest } = options;
  const { allowOut = [], denyOut = [], allow_internet_access: allowInternetAccess } = change;
  assertOutgoing({ allowed: allowOut, denied: denyOut });
  return {
    ...rest,
    ...(allowInternetAccess === undefined ? {} : { allowInternetAccess }),
    ...(allowOut.length > 0 ? { allowOut } : {}),
    ...(denyOut.length > 0 ? { denyOut } : {}),
  };
}

/** The options of a sandbox for its details. */
export function encodeOptions({ allowInternetAccess, allowOut, denyOut }: SandboxOptions): Static<typeof ShownOptions> {
  const network = { ...(allowOut ? { allowOut: [...allowOut] } : {}), ...(denyOut ? { denyOut: [...denyOut] } : {}) };
  return {
    ...(allowInternetAccess === undefined ? {} : { allowInternetAccess }),
    ...(Object.keys(network).length > 0 ? { network } : {}),
  };
}
