import { type Static, Type } from "typebox";
import { parseTemplateReference } from "../../../templates/reference.ts";
import { NetworkLimitsSchema, networkLimitsFrom } from "../../input/network-limits.ts";
import { defineOperation, type OperationRequest } from "../../operation.ts";
import { encodeNames } from "../../output/encode-template.ts";
import { failures } from "../../output/responses.ts";
import { ErrorSchema } from "../../schemas.ts";
import type { ApiServices } from "../../services.ts";
import { TemplateRefParams } from "../../template-schemas.ts";

const BodySchema = Type.Object(
  {
    public: Type.Optional(Type.Boolean({ description: "Whether every team may use the template." })),
    networkLimits: NetworkLimitsSchema,
  },
  { title: "TemplateUpdate" },
);

const common = {
  method: "PATCH",
  tag: "templates",
  auth: ["apiKey", "accessToken"],
  scope: "templates:build",
  params: TemplateRefParams,
  body: BodySchema,
  bodyOptional: true,
  repeatable: true,
} as const;

export const updateTemplate = defineOperation({
  ...common,
  id: "updateTemplate",
  path: "/v2/templates/{templateID}",
  summary: "Publish a template, make it private, or limit the network of its sandboxes",
  description:
    "`networkLimits` replaces the former limits, and counts for sandboxes that are created from then on. " +
    "A published template can be used by every team, by its id or its names with the namespace. Making it private frees the bare names that an " +
    "older client claimed for it. Without a body, nothing is changed.",
  responses: {
    200: {
      description: "The template's names.",
      schema: Type.Object({ names: Type.Array(Type.String()) }, { title: "TemplateUpdateResult" }),
    },
    ...failures(403, 404),
  },
  handle: async (services, request) => {
    return { status: 200, body: { names: await update(services, request, { claimsBareNames: false }) } };
  },
});

export const updateTemplateV1 = defineOperation({
  ...common,
  id: "updateTemplateV1",
  path: "/templates/{templateID}",
  summary: "Publish a template, or make it private, as older clients do",
  description:
    "Publishing also claims each of the template's names without the namespace, for all teams. When another template has one of them, nothing " +
    "is changed and the answer is 409.",
  deprecated: true,
  responses: {
    200: { description: "The template is changed.", schema: Type.Object({}) },
    ...failures(403, 404),
    409: { description: "Another template has one of the names without a namespace.", schema: ErrorSchema },
  },
  handle: async (services, request) => {
    await update(services, request, { claimsBareNames: true });
    return { status: 200, body: {} };
  },
});

async function update(
  services: ApiServices,
  { caller, params, body }: OperationRequest<Static<typeof TemplateRefParams>, unknown, Static<typeof BodySchema> | undefined>,
  { claimsBareNames }: { readonly claimsBareNames: boolean },
): Promise<readonly string[]> {
  const teams = await services.teams.teamsOf(caller);
  const limits = body?.networkLimits === undefined ? undefined : networkLimitsFrom(body.networkLimits);
  const change = { isPublic: body?.public, networkLimits: limits, claimsBareNames };
  return encodeNames(await services.templates.update(teams, parseTemplateReference(params.templateID), change)).names;
}
