import type { TSchema } from "typebox";
import { Compile } from "typebox/compile";
import { validationError } from "../../errors.ts";

/** Throws when a value is not of the schema; says where and what, for the first thing that is wrong. */
export type Check = (value: unknown) => void;

/** Nothing is converted: a number in quotes is not a number, and what the schema does not name is let through and ignored. */
export function createCheck(schema: TSchema, place: "path" | "query" | "body"): Check {
  const compiled = Compile(schema);
  return (value) => {
    if (compiled.Check(value)) return;
    const [first] = compiled.Errors(value);
    throw validationError(`${place}${first?.instancePath ?? ""} ${first?.message ?? "is not valid"}`);
  };
}

interface PropertySchema {
  readonly type?: string;
}

/** Query text as the schema means it: whole numbers become numbers, everything else stays text. */
export function readQuery(schema: TSchema, query: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const properties = (schema as { properties?: Readonly<Record<string, PropertySchema>> }).properties ?? {};
  const read: Record<string, unknown> = { ...query };
  for (const [name, property] of Object.entries(properties)) {
    const text = read[name];
    if (property.type === "integer" && typeof text === "string" && /^-?\d{1,15}$/.test(text)) read[name] = Number(text);
  }
  return read;
}
