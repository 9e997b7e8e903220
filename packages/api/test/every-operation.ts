// Calls every operation of the served document with values that match its schemas. A new operation is tested as soon as it is in the document.

import { randomBytes, randomUUID } from "node:crypto";
import { expect } from "vitest";
import { addTemplate } from "./add-template.ts";
import type { Answer, ApiHarness } from "./api-harness.ts";

export interface Schema {
  readonly $ref?: string;
  readonly type?: string;
  readonly anyOf?: readonly Schema[];
  readonly const?: unknown;
  readonly minimum?: number;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
}

interface Described {
  readonly "x-scope": string;
  readonly summary: string;
  readonly operationId: string;
  readonly security: readonly Readonly<Record<string, unknown>>[];
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly required: boolean; readonly schema: Schema }[];
  readonly requestBody?: { readonly content: { readonly "application/json": { readonly schema: Schema } } };
}

export interface ApiDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Described>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

export interface Operation extends Described {
  readonly method: string;
  readonly path: string;
}

/** What the team of the harness has, by the names that parameters and fields of bodies have. */
export type Owned = Readonly<Record<string, string>>;

export const hex = () => randomBytes(20).toString("hex");

export async function documentOf(api: ApiHarness): Promise<ApiDocument> {
  return (await api.call("GET", "/openapi.json", { key: null })).body;
}

export function operationsOf(document: ApiDocument): readonly Operation[] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, described]) => ({ ...described, method: method.toUpperCase(), path })),
  );
}

/** A value that matches the schema, with the ids of what is owned wherever a name asks for one. */
export function sample(document: ApiDocument, schema: Schema, owned: Owned, name = ""): unknown {
  const named = schema.$ref?.split("/").at(-1);
  if (named !== undefined) return sample(document, document.components.schemas[named] ?? {}, owned, name);
  if (schema.anyOf) return sample(document, schema.anyOf[0] ?? {}, owned, name);
  if (schema.const !== undefined) return schema.const;
  if (schema.type === "integer" || schema.type === "number") return Math.max(schema.minimum ?? 0, 1);
  if (schema.type === "boolean") return true;
  if (schema.type === "array") return ["v1"];
  if (schema.type !== "object") return owned[name] ?? "foreign";
  const wanted = Object.entries(schema.properties ?? {}).filter(
    ([field]) => schema.required?.includes(field) || owned[field] !== undefined,
  );
  return Object.fromEntries(wanted.map(([field, inner]) => [field, sample(document, inner, owned, field)]));
}

/** Throws for a path parameter that this test does not know: add one to `ownedBy`. */
export function pathOf(operation: Operation, owned: Owned): string {
  const filled = operation.path.replaceAll(/\{(\w+)\}/g, (_whole, name: string) => {
    const value = owned[name];
    if (value === undefined) throw new Error(`${operation.operationId}: this test has nothing for {${name}}`);
    return encodeURIComponent(value);
  });
  const query = (operation.parameters ?? []).filter((parameter) => parameter.in === "query" && parameter.required);
  const pairs = query.map(({ name, schema }) => `${name}=${encodeURIComponent(owned[name] ?? (schema.type === "integer" ? "1" : "x"))}`);
  return pairs.length === 0 ? filled : `${filled}?${pairs.join("&")}`;
}

export async function ownedBy(api: ApiHarness): Promise<Owned> {
  const sandboxID = await api.create({ metadata: { marker: "metadata-marker" } });
  const paused = await api.create({ metadata: { marker: "paused-marker" } });
  expect((await api.call("POST", `/sandboxes/${paused}/pause`)).status).toBe(204);
  const snapshot = await api.call("POST", `/sandboxes/${sandboxID}/snapshots`, { body: { name: "snapshot-marker" } });
  expect(snapshot.status).toBe(201);
  const template = await addTemplate(api, { alias: "template-marker", builds: [{}, { tag: "v1" }] });
  const bearer = { key: null, headers: { Authorization: `Bearer ${api.accessToken}` } };
  const key = await api.call("POST", "/api-keys", { ...bearer, body: { name: "key-marker" } });
  const token = await api.call("POST", "/access-tokens", { ...bearer, body: { name: "token-marker" } });
  const secret = await api.call("POST", "/secrets", { body: { name: "secret-marker", value: "secret-value" } });
  expect(secret.status).toBe(201);
  const link = await api.call("POST", `/sandboxes/${sandboxID}/links`, { body: { port: 3000, expiresIn: 600, path: "/link-marker" } });
  expect(link.status).toBe(201);
  const volume = await api.call("POST", "/volumes", { body: { name: "volume-marker" } });
  expect(volume.status).toBe(201);
  const webhook = await api.call("POST", "/webhooks", {
    body: { url: "https://webhook-marker.example/", name: "webhook-marker", enabled: false },
  });
  expect(webhook.status).toBe(201);
  const userID = randomUUID();
  await api.store.identity.putUser({ id: userID, name: "member-marker", createdAt: 1 });
  await api.store.identity.putMembership({ teamId: api.teamId, userId: userID, isDefault: true, role: "viewer" });
  const invitation = await api.call("POST", `/teams/${api.teamId}/invitations`, {
    ...bearer,
    body: { role: "viewer", email: "invited@marker" },
  });
  expect(invitation.status).toBe(201);
  return {
    userID,
    invitationID: invitation.body.invitationID,
    sandboxID,
    sandbox_ids: sandboxID,
    paused,
    templateID: template.id,
    buildID: template.builds[0]?.id ?? "",
    teamID: api.teamId,
    apiKeyID: key.body.id,
    accessTokenID: token.body.id,
    snapshotID: snapshot.body.snapshotID,
    alias: "default/template-marker",
    target: `${template.id}:v1`,
    fromTemplate: "default/template-marker",
    tag: "v1",
    hash: "a".repeat(64),
    nodeID: "node1",
    tier: "no-such-tier",
    volumeID: volume.body.volumeID,
    secretID: secret.body.secretID,
    linkID: link.body.linkID,
    webhookID: webhook.body.webhookID,
  };
}

/** Everything of the team of the harness that callers can see. */
export async function stateOf(api: ApiHarness, { templateID = "", sandboxID = "" }: Owned): Promise<unknown> {
  const templates = ["/v2/templates", `/templates/${templateID}`, `/templates/${templateID}/tags`];
  const paths = ["/v2/sandboxes", `/sandboxes/${sandboxID}/links`, "/snapshots", "/secrets", "/webhooks", "/volumes", ...templates];
  const answers = await Promise.all(paths.map(async (path) => (await api.call("GET", path)).body));
  const bearer = { key: null, headers: { Authorization: `Bearer ${api.accessToken}` } };
  const keys = await api.call("GET", "/api-keys", bearer);
  const team = await Promise.all(
    ["members", "invitations"].map(async (what) => (await api.call("GET", `/teams/${api.teamId}/${what}`, bearer)).body),
  );
  return { answers, team, keys: keys.body.map(({ lastUsed: _lastUsed, ...rest }: Answer["body"]) => rest) };
}

/** Calls an operation with values that match its schemas. */
export async function send(
  api: Pick<ApiHarness, "call">,
  operation: Operation,
  about: { readonly owned: Owned; readonly document: ApiDocument; readonly headers: Record<string, string> },
): Promise<Answer> {
  const { owned, document, headers } = about;
  const schema = operation.requestBody?.content["application/json"].schema;
  const body = schema && sample(document, schema, owned);
  return await api.call(operation.method, pathOf(operation, owned), { key: null, headers, ...(schema ? { body } : {}) });
}

export const isPublic = (operation: Operation) => operation.security.length === 0;

/** Whether the operation accepts a credential of this kind by itself. */
export const takes = (operation: Operation, scheme: string) => operation.security.some((needed) => Object.keys(needed).join() === scheme);
