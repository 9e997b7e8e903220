import { readdirSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";

const TEMPLATES = join(import.meta.dirname, "../../../../templates");

/** `template.json` of a folder of `templates/`. */
interface ShippedDefinition {
  readonly fromTemplate: string;
  readonly cpuCount: number;
  readonly memoryMB: number;
  /** For templates with a start command. */
  readonly readyCommand?: string;
}

export interface ShippedTemplate extends ShippedDefinition {
  readonly name: string;
  readonly directory: string;
}

/** Names of the templates that ship with the platform and that the builder makes. */
export function shippedNames(): readonly string[] {
  return readdirSync(TEMPLATES)
    .filter((name) => readdirSync(join(TEMPLATES, name)).includes("template.json"))
    .toSorted();
}

export async function readShipped(name: string): Promise<ShippedTemplate> {
  const directory = join(TEMPLATES, name);
  const definition = JSON.parse(await readFile(join(directory, "template.json"), "utf8")) as ShippedDefinition;
  return { name, directory, ...definition };
}
