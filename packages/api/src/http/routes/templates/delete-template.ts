import { LISTED_AS, type SandboxState } from "@skerry/store";
import { Type } from "typebox";
import { invalid, publicError } from "../../../errors.ts";
import type { Caller } from "../../../keys/authenticate.ts";
import { parseTemplateReference } from "../../../templates/reference.ts";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import type { ApiServices } from "../../services.ts";

const STATES = Object.keys(LISTED_AS) as SandboxState[];
const RUNNING = [...STATES.filter((state) => LISTED_AS[state] === "running"), "starting" as const];
const PAUSED = STATES.filter((state) => LISTED_AS[state] === "paused");

export const deleteTemplate = defineOperation({
  id: "deleteTemplate",
  method: "DELETE",
  path: "/templates/{templateID}",
  tag: "templates",
  summary: "Delete a template or a snapshot",
  description:
    "All its builds go, whatever tag is given, and its names are free at once. Refused while sandboxes that were made from it run or are paused.",
  auth: ["apiKey", "accessToken"],
  params: Type.Object({ templateID: Type.String({ description: "Its id or name, percent-encoded; a tag is ignored." }) }),
  responses: { 204: { description: "It is gone." }, ...failures(403, 404) },
  repeatable: true,
  handle: async (services, { caller, params }) => {
    const { namespace, name } = parseTemplateReference(params.templateID);
    const shown = namespace === undefined ? name : `${namespace}/${name}`;
    const teams = await teamsOf(services, caller);
    const { templates, sandboxes, images } = services.store;
    const template =
      namespace !== undefined
        ? await templates.findAlias({ namespace, alias: name })
        : ((await findNamed(services, teams, name)) ?? (await templates.findTemplate(name)));
    if (!template) throw publicError("not_found", `template '${shown}' not found`);
    if (!teams.some(({ id }) => id === template.teamId)) throw publicError("forbidden", `You don't have access to template '${shown}'`);
    if (await sandboxes.hasOfTemplate(template.id, RUNNING)) {
      throw invalid(`cannot delete template '${shown}' because there are running sandboxes using it`);
    }
    if (await sandboxes.hasOfTemplate(template.id, PAUSED)) {
      throw invalid(`cannot delete template '${shown}' because there are paused sandboxes using it`);
    }
    if (!(await templates.delete(template.id, services.clock.now()))) throw publicError("not_found", `template '${shown}' not found`);
    for (const image of await images.listUnsettled("deleting", 100)) services.images.finishInBackground(image);
    return { status: 204 };
  },
});

async function teamsOf(services: ApiServices, caller: Caller): Promise<readonly { readonly id: string; readonly slug: string }[]> {
  if (caller.kind === "team") return [caller.team];
  if (caller.kind !== "user") return [];
  return (await services.store.identity.listMemberships(caller.userId)).map(({ team }) => team);
}

/** Their own names first, then the global ones. */
async function findNamed(services: ApiServices, teams: readonly { readonly slug: string }[], name: string) {
  for (const namespace of [...teams.map(({ slug }) => slug), ""]) {
    const template = await services.store.templates.findAlias({ namespace, alias: name });
    if (template) return template;
  }
  return undefined;
}
