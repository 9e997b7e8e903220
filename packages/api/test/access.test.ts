// Calls every operation of the served document with credentials that must not do. A new operation is tested as soon as it is in the document.

import { randomBytes, randomUUID } from "node:crypto";
import { Secret } from "@skerry/base";
import { expect, it } from "vitest";
import { ACCESS_TOKEN_PREFIX, API_KEY_PREFIX, credentialOf } from "../src/keys/credential.ts";
import { addTemplate } from "./add-template.ts";
import type { Answer, ApiHarness } from "./api-harness.ts";
import { describeOnEachDatabase } from "./each-database.ts";

interface Schema {
  readonly $ref?: string;
  readonly type?: string;
  readonly anyOf?: readonly Schema[];
  readonly const?: unknown;
  readonly minimum?: number;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
}

interface Described {
  readonly summary: string;
  readonly operationId: string;
  readonly security: readonly Readonly<Record<string, unknown>>[];
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly required: boolean; readonly schema: Schema }[];
  readonly requestBody?: { readonly content: { readonly "application/json": { readonly schema: Schema } } };
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Described>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

interface Operation extends Described {
  readonly method: string;
  readonly path: string;
}

/** What the team of the harness has, by the names that parameters and fields of bodies have. */
type Owned = Readonly<Record<string, string>>;

const hex = () => randomBytes(20).toString("hex");

async function documentOf(api: ApiHarness): Promise<Document> {
  return (await api.call("GET", "/openapi.json", { key: null })).body;
}

function operationsOf(document: Document): readonly Operation[] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, described]) => ({ ...described, method: method.toUpperCase(), path })),
  );
}

/** A value that matches the schema, with the ids of what is owned wherever a name asks for one. */
function sample(document: Document, schema: Schema, owned: Owned, name = ""): unknown {
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
function pathOf(operation: Operation, owned: Owned): string {
  const filled = operation.path.replaceAll(/\{(\w+)\}/g, (_whole, name: string) => {
    const value = owned[name];
    if (value === undefined) throw new Error(`${operation.operationId}: this test has nothing for {${name}}`);
    return encodeURIComponent(value);
  });
  const query = (operation.parameters ?? []).filter((parameter) => parameter.in === "query" && parameter.required);
  const pairs = query.map(({ name, schema }) => `${name}=${encodeURIComponent(owned[name] ?? (schema.type === "integer" ? "1" : "x"))}`);
  return pairs.length === 0 ? filled : `${filled}?${pairs.join("&")}`;
}

async function ownedBy(api: ApiHarness): Promise<Owned> {
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
  return {
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
    volumeID: randomUUID(),
    secretID: secret.body.secretID,
    linkID: link.body.linkID,
  };
}

/** Everything of the team of the harness that callers can see. */
async function stateOf(api: ApiHarness, { templateID = "", sandboxID = "" }: Owned): Promise<unknown> {
  const templates = ["/v2/templates", `/templates/${templateID}`, `/templates/${templateID}/tags`];
  const paths = ["/v2/sandboxes", `/sandboxes/${sandboxID}/links`, "/snapshots", "/secrets", ...templates];
  const answers = await Promise.all(paths.map(async (path) => (await api.call("GET", path)).body));
  const keys = await api.call("GET", "/api-keys", { key: null, headers: { Authorization: `Bearer ${api.accessToken}` } });
  return { answers, keys: keys.body.map(({ lastUsed: _lastUsed, ...rest }: Answer["body"]) => rest) };
}

describeOnEachDatabase("every operation", { inSample: "both" }, (api) => {
  const isPublic = (operation: Operation) => operation.security.length === 0;
  const send = (operation: Operation, owned: Owned, document: Document, headers: Record<string, string>) => {
    const schema = operation.requestBody?.content["application/json"].schema;
    const body = schema && sample(document, schema, owned);
    return api().call(operation.method, pathOf(operation, owned), { key: null, headers, ...(schema ? { body } : {}) });
  };

  it("refuses missing, wrong, deleted, expired and unsuitable credentials", async () => {
    const document = await documentOf(api());
    const owned = await ownedBy(api());
    const before = await stateOf(api(), owned);
    const { identity, keys } = api().store;
    const [deleted, expired, deletedToken, expiredToken] = [hex(), hex(), hex(), hex()];
    const now = api().store.clock.now();
    const member = await identity.findFirstMember(api().teamId);
    const userId = member?.userId ?? "";
    const keyOf = (value: string) => credentialOf(new Secret(API_KEY_PREFIX + value), { prefix: API_KEY_PREFIX, name: "k", now });
    const tokenOf = (value: string) =>
      credentialOf(new Secret(ACCESS_TOKEN_PREFIX + value), { prefix: ACCESS_TOKEN_PREFIX, name: "t", now });
    const gone = { key: keyOf(deleted), token: tokenOf(deletedToken) };
    await identity.addApiKey({ ...gone.key, teamId: api().teamId });
    await identity.addAccessToken({ ...gone.token, userId });
    await keys.removeKey(api().teamId, gone.key.id, now);
    await keys.removeToken(userId, gone.token.id, now);
    await identity.addApiKey({ ...keyOf(expired), teamId: api().teamId, expiresAt: now - 1 });
    await identity.addAccessToken({ ...tokenOf(expiredToken), userId, expiresAt: now - 1 });
    const refused: Record<string, string>[] = [
      {},
      ...["x", "e2b_", "e2b_zz", `e2b_${hex()}`, `e2b_${deleted}`, `e2b_${expired}`, api().accessToken].map((key) => ({
        "X-API-Key": key,
      })),
      ...["x", "sk_e2b_zz", `sk_e2b_${hex()}`, `sk_e2b_${deletedToken}`, `sk_e2b_${expiredToken}`, api().apiKey].map((token) => ({
        Authorization: `Bearer ${token}`,
      })),
      { "X-Admin-Token": "x", "X-Team-ID": api().teamId },
      { "X-Team-ID": api().teamId },
    ];
    const operations = operationsOf(document).filter((operation) => !isPublic(operation));
    expect(operations.length).toBeGreaterThan(50);
    for (const operation of operations) {
      const takes = (scheme: string) => operation.security.some((needed) => Object.hasOwn(needed, scheme));
      // Credentials that are right, for another kind of operation.
      const unsuitable = [
        ...(takes("apiKey") ? [] : [{ "X-API-Key": api().apiKey }]),
        ...(takes("accessToken") ? [] : [{ Authorization: `Bearer ${api().accessToken}` }]),
      ];
      const answers = await Promise.all([...refused, ...unsuitable].map((headers) => send(operation, owned, document, headers)));
      for (const { body } of answers) {
        expect({ operation: operation.operationId, ...body }).toEqual({
          operation: operation.operationId,
          code: 401,
          message: expect.any(String),
        });
      }
    }
    const state = (await stateOf(api(), owned)) as { keys: { name: string }[] };
    expect({ ...state, keys: state.keys.filter(({ name }) => name !== "k") }).toEqual(before);
  });

  it("hides everything of one team from another, and changes nothing of it", async () => {
    const document = await documentOf(api());
    const owned = await ownedBy(api());
    const before = await stateOf(api(), owned);
    const held = [...api().node.held.keys()];
    const stranger = ACCESS_TOKEN_PREFIX + hex();
    const { identity } = api().store;
    const now = api().store.clock.now();
    const other = await identity.findTeamBySlug("other");
    const userId = randomUUID();
    await identity.putUser({ id: userId, name: "Stranger", createdAt: now });
    await identity.putMembership({ teamId: other?.id ?? "", userId, isDefault: true });
    const token = credentialOf(new Secret(stranger), { prefix: ACCESS_TOKEN_PREFIX, name: "theirs", now });
    await identity.addAccessToken({ ...token, userId });
    const callers: Record<string, string>[] = [
      { "X-API-Key": api().otherKey },
      { Authorization: `Bearer ${stranger}` },
      { Authorization: `Bearer ${stranger}`, "X-Team-ID": api().teamId },
      { "X-Admin-Token": api().adminToken, "X-Team-ID": other?.id ?? "" },
    ];
    const unknown = { ...owned, sandboxID: `i${"0".repeat(20)}`, templateID: "0".repeat(20), teamID: randomUUID() };
    // What any answer would betray. The ids that a request names may be repeated to it.
    const markers = [
      "metadata-marker",
      "paused-marker",
      "snapshot-marker",
      "key-marker",
      "link-marker",
      ...Object.values(owned).filter((id) => id.length > 15),
    ];
    for (const operation of operationsOf(document)) {
      const isForTheOperator = operation.security.some((needed) => Object.keys(needed).join() === "admin");
      if (isPublic(operation) || isForTheOperator) continue;
      for (const headers of callers) {
        const about = `${operation.operationId} ${Object.keys(headers)}`;
        const answer = await send(operation, owned, document, headers);
        const schema = operation.requestBody?.content["application/json"].schema;
        const sent = pathOf(operation, owned) + JSON.stringify(schema ? sample(document, schema, owned) : "");
        const betrayed = markers.filter((marker) => !decodeURIComponent(sent).includes(marker) && answer.text.includes(marker));
        expect({ about, betrayed }).toEqual({ about, betrayed: [] });
        if (!operation.path.includes("{") || operation.summary.startsWith("Not built yet")) continue;
        // Some lists are empty for what does not exist. So they must be for what belongs to another team.
        const missing = answer.status === 200 ? await send(operation, unknown, document, headers) : undefined;
        if (missing && operation.method === "GET") expect({ about, text: answer.text }).toEqual({ about, text: missing.text });
        else expect({ about, status: answer.status, text: answer.text }).toMatchObject({ about, status: expect.toSatisfy(isRefusal) });
      }
    }
    expect(await stateOf(api(), owned)).toEqual(before);
    for (const id of held) expect(api().node.held.has(id)).toBe(true);
  });
});

const isRefusal = (status: number) => [400, 401, 403, 404].includes(status);
