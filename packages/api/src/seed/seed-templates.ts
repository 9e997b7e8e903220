import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { type Clock, errnoOf, PlatformError } from "@skerry/base";
import { DEFAULT_TAG, GLOBAL_NAMESPACE, type Store } from "@skerry/store";
import { type Static, Type } from "typebox";
import { Compile } from "typebox/compile";

const TemplateFileSchema = Type.Object({
  templateId: Type.String({ pattern: "^[a-z0-9]{1,64}$" }),
  alias: Type.String({ pattern: "^[a-z0-9_-]+$" }),
  buildId: Type.String({ pattern: "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$" }),
  layers: Type.Array(Type.String({ pattern: "^sha256:[0-9a-f]{64}$" }), { minItems: 1 }),
  cpuCount: Type.Integer({ minimum: 1 }),
  memoryMB: Type.Integer({ minimum: 1 }),
  diskSizeMB: Type.Optional(Type.Integer({ minimum: 0 })),
  defaultUser: Type.Optional(Type.String({ minLength: 1 })),
  defaultWorkdir: Type.Optional(Type.String({ minLength: 1 })),
  description: Type.Optional(Type.String()),
});

type TemplateFile = Static<typeof TemplateFileSchema>;

const templateFile = Compile(TemplateFileSchema);

/**
 * Registers the templates that the `*.json` files of a folder describe, under global names, for every team. An unchanged file changes
 * nothing; a file with a new build makes that build the current one.
 */
export async function seedTemplates(
  store: Store,
  folder: string,
  options: { readonly teamId: string; readonly clock: Clock },
): Promise<void> {
  for (const name of await listJson(folder)) {
    await seedTemplate(store, await readTemplateFile(join(folder, name)), { teamId: options.teamId, now: options.clock.now() });
  }
}

async function listJson(folder: string): Promise<readonly string[]> {
  try {
    return (await readdir(folder)).filter((name) => name.endsWith(".json")).sort();
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return [];
    throw error;
  }
}

async function readTemplateFile(path: string): Promise<TemplateFile> {
  const problem = (why: string, cause?: unknown) =>
    new PlatformError("config_invalid", `${path} does not describe a template: ${why}`, { cause });
  let value: unknown;
  try {
    value = JSON.parse(await readFile(path, "utf8"));
  } catch (error) {
    throw problem("it is not JSON", error);
  }
  if (templateFile.Check(value)) return value;
  const [first] = templateFile.Errors(value);
  throw problem(`${first?.instancePath ?? ""} ${first?.message ?? "is not valid"}`);
}

async function seedTemplate(store: Store, file: TemplateFile, owner: { readonly teamId: string; readonly now: number }): Promise<void> {
  const { templates } = store;
  const { now } = owner;
  const { templateId: id, description } = file;
  await templates.putTemplate({ id, teamId: owner.teamId, isPublic: true, isDefault: true, description, now });
  await templates.putAlias({ namespace: GLOBAL_NAMESPACE, alias: file.alias, templateId: file.templateId, now });
  const build = {
    id: file.buildId,
    templateId: file.templateId,
    status: "ready",
    cpuCount: file.cpuCount,
    memoryMb: file.memoryMB,
    diskSizeMb: file.diskSizeMB ?? 0,
    layers: file.layers,
    defaultUser: file.defaultUser ?? "user",
    defaultWorkdir: file.defaultWorkdir ?? "/home/user",
    agentVersion: "",
    createdAt: now,
    image: null,
  } as const;
  await templates.addBuild(build, DEFAULT_TAG);
}
