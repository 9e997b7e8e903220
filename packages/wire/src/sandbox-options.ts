// The options of a sandbox as one plain value. The message SandboxOptions of spec/node/node.proto is their only schema. The control plane keeps
// this value in the database and sends it to a node as the message; the node keeps it in its records.

import { fromJson, type JsonObject, type JsonValue, type Message, toJson } from "@bufbuild/protobuf";
import { type SandboxOptions as SandboxOptionsMessage, SandboxOptionsSchema } from "../gen/node/node_pb.js";

/** The JSON form of a message whose fields are truth values, 32-bit numbers, text, and lists, maps and messages of those. It omits what is empty. */
type Plain<T> = T extends Message
  ? { readonly [K in keyof T as Exclude<K, "$typeName" | "$unknown">]?: Plain<T[K]> }
  : T extends object
    ? { readonly [K in keyof T]: Plain<T[K]> }
    : T;

/** What a caller chose for a sandbox, as plain JSON. An absent option was not chosen. */
export type SandboxOptions = Plain<SandboxOptionsMessage>;

/**
 * Checks options that were stored as JSON. Options that this version does not know stay in the value, so that a sandbox of a later version can
 * still be listed and killed. Throws an Error when the value does not fit the schema.
 */
export function parseOptions(json: unknown): SandboxOptions {
  fromJson(SandboxOptionsSchema, json as JsonValue, { ignoreUnknownFields: true });
  return json as SandboxOptions;
}

/** The options to send to a node. Throws an Error for options that this version does not know: nothing may start without them. */
export function encodeOptions(options: SandboxOptions): SandboxOptionsMessage {
  return fromJson(SandboxOptionsSchema, options as JsonObject);
}

/** The options that a node received. */
export function decodeOptions(message: SandboxOptionsMessage): SandboxOptions {
  return toJson(SandboxOptionsSchema, message) as SandboxOptions;
}

/** Options that count as changed after `before`. */
export function changedAfter(before: SandboxOptions, options: SandboxOptions): SandboxOptions {
  return { ...options, changeNumber: (before.changeNumber ?? 0) + 1 };
}

/** Whether these options were replaced by `by`, although they may arrive later. */
export function isReplacedBy(by: SandboxOptions, { changeNumber = 0 }: SandboxOptions): boolean {
  return changeNumber < (by.changeNumber ?? 0);
}
