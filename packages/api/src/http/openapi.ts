// Generates the OpenAPI document from the operations. A schema with a `title` becomes a component and is referred to.

import type { AuthScheme } from "../keys/authenticate.ts";
import type { Operation, ResponseSpec } from "./operation.ts";

type Json = Record<string, unknown>;

const SECURITY_SCHEMES: Readonly<Record<string, Json>> = {
  apiKey: { type: "apiKey", in: "header", name: "X-API-Key", description: "A team's key: `e2b_` and hex digits." },
  accessToken: { type: "http", scheme: "bearer", description: "A user's token: `sk_e2b_` and hex digits." },
  provider: {
    type: "http",
    scheme: "bearer",
    bearerFormat: "JWT",
    description: "A token of the platform's identity provider, if it has one. An addition of Skerry.",
  },
  admin: { type: "apiKey", in: "header", name: "X-Admin-Token", description: "The operator's token." },
  team: { type: "apiKey", in: "header", name: "X-Team-ID", description: "The team that the operator or the user acts as." },
};

/** What a request must carry for each scheme. */
const REQUIREMENTS: Readonly<Record<AuthScheme, readonly Json[]>> = {
  apiKey: [{ apiKey: [] }, { provider: [], team: [] }],
  accessToken: [{ accessToken: [] }, { provider: [] }],
  admin: [{ admin: [] }],
  adminTeam: [{ admin: [], team: [] }],
};

const DESCRIPTION = [
  "Creates, finds and ends sandboxes. Every error is JSON with `code` (the HTTP status again) and `message`.",
  "A request that does not match its schema gets 400 and a message that starts with `validation error`. Unknown fields are ignored.",
  "Every 429 and 5xx answer has the header `Should-Retry`. It is `true` when repeating the same request is safe and may succeed.",
  "A body may have at most 16 MiB.",
].join(" ");

const IDEMPOTENCY_KEY: Json = {
  name: "Idempotency-Key",
  in: "header",
  required: false,
  description:
    "Identifies this request for a day, within the team. A repeated request with the same key gets the same answer, and nothing is done twice. " +
    "A different request with the same key is refused with 422.",
  schema: { type: "string", pattern: "^[a-z0-9-]{1,255}$" },
};

export function createOpenApi(operations: readonly Operation[]): Json {
  const components: Json = {};
  const paths: Record<string, Json> = {};
  for (const operation of operations) {
    const described = { [operation.method.toLowerCase()]: describe(operation, components) };
    paths[operation.path] = { ...paths[operation.path], ...described };
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Skerry platform API",
      version: "0.1.0",
      description: DESCRIPTION,
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    paths,
    components: { schemas: sortKeys(components), securitySchemes: SECURITY_SCHEMES },
  };
}

function describe(operation: Operation, components: Json): Json {
  const parameters = [
    ...parametersOf(operation.params, "path", operation.path),
    ...parametersOf(operation.query, "query", operation.path),
    ...(operation.idempotent ? [IDEMPOTENCY_KEY] : []),
  ];
  return {
    operationId: operation.id,
    tags: [operation.tag],
    summary: operation.summary,
    ...(operation.description === undefined ? {} : { description: operation.description }),
    ...(operation.deprecated ? { deprecated: true } : {}),
    "x-scope": operation.scope,
    security: operation.auth.flatMap((scheme) => REQUIREMENTS[scheme]),
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(operation.body
      ? { requestBody: { required: operation.bodyOptional !== true, content: jsonContent(hoist(operation.body, components)) } }
      : {}),
    responses: Object.fromEntries(
      Object.entries(operation.responses).map(([status, response]) => [status, describeResponse(response, components)]),
    ),
  };
}

function describeResponse(response: ResponseSpec, components: Json): Json {
  const headers = Object.entries(response.headers ?? {}).map(([name, description]) => [name, { description, schema: { type: "string" } }]);
  const isText = (response.schema as { type?: string } | undefined)?.type === "string";
  return {
    description: response.description,
    ...(headers.length > 0 ? { headers: Object.fromEntries(headers) } : {}),
    ...(response.schema
      ? { content: isText ? { "text/plain": { schema: { type: "string" } } } : jsonContent(hoist(response.schema, components)) }
      : {}),
  };
}

function parametersOf(schema: unknown, place: "path" | "query", path: string): Json[] {
  const object = schema as { properties?: Record<string, Json>; required?: readonly string[] } | undefined;
  const known = object?.properties ?? {};
  const unknown = place === "path" ? [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1] ?? "").filter((name) => !known[name]) : [];
  const all = [...Object.entries(known), ...unknown.map((name): [string, Json] => [name, { type: "string" }])];
  return all.map(([name, { description, ...rest }]) => ({
    name,
    in: place,
    required: place === "path" || (object?.required?.includes(name) ?? false),
    ...(description === undefined ? {} : { description }),
    schema: rest,
  }));
}

function jsonContent(schema: unknown): Json {
  return { "application/json": { schema } };
}

/** Replaces every titled part of a schema by a reference, and adds the part to `components`. */
function hoist(schema: unknown, components: Json): unknown {
  if (Array.isArray(schema)) return schema.map((part) => hoist(part, components));
  if (typeof schema !== "object" || schema === null) return schema;
  const { title, ...rest } = schema as Json;
  const inner = Object.fromEntries(Object.entries(rest).map(([name, part]) => [name, hoist(part, components)]));
  if (typeof title !== "string") return inner;
  components[title] = inner;
  return { $ref: `#/components/schemas/${title}` };
}

function sortKeys(object: Json): Json {
  return Object.fromEntries(Object.entries(object).sort(([a], [b]) => (a < b ? -1 : 1)));
}
