import type { TSchema } from "typebox";
import { Compile } from "typebox/compile";
import type { TLocalizedValidationError } from "typebox/error";
import { validationError } from "../../errors.ts";

/** Throws when a value does not match the schema. The message names the first mismatch and where it is. */
export type Check = (value: unknown) => void;

/** Values are not converted: a quoted number is not a number. Unknown fields are ignored. */
export function createCheck(schema: TSchema, place: "path" | "query" | "body"): Check {
  const compiled = Compile(schema);
  return (value) => {
    if (compiled.Check(value)) return;
    const [first] = compiled.Errors(value);
    throw validationError(`${place}${first?.instancePath ?? ""} ${first ? problemOf(first) : "is not valid"}`);
  };
}

/** The library's text, but for a field of an object that knows all its fields. */
function problemOf({ keyword, message }: TLocalizedValidationError): string {
  return keyword === "boolean" ? "is not known" : message;
}

interface PropertySchema {
  readonly type?: string;
}

/** Reads query values by their schema: integers become numbers, everything else stays text. */
export function readQuery(schema: TSchema, query: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const properties = (schema as { properties?: Readonly<Record<string, PropertySchema>> }).properties ?? {};
  const read: Record<string, unknown> = { ...query };
  for (const [name, property] of Object.entries(properties)) {
    const text = read[name];
    if (property.type === "integer" && typeof text === "string" && /^-?\d{1,15}$/.test(text)) read[name] = Number(text);
  }
  return read;
}
