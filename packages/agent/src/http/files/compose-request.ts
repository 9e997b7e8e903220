import { asError } from "@skerry/base";
import { HttpError } from "../exchange.ts";

export interface ComposeRequest {
  readonly sourcePaths: readonly string[];
  readonly destination: string;
  /** An empty string counts as a name, not as absent. */
  readonly username: string | undefined;
}

export function parseComposeRequest(text: string): ComposeRequest {
  const body = parseObject(text);
  const { source_paths: sourcePaths = [], destination = "", username = undefined } = body;
  if (!isStringList(sourcePaths)) throw invalid("source_paths is not a list of strings");
  if (typeof destination !== "string") throw invalid("destination is not a string");
  if (username !== undefined && typeof username !== "string") throw invalid("username is not a string");
  if (sourcePaths.length === 0) throw new HttpError(400, "source_paths must not be empty");
  if (destination === "") throw new HttpError(400, "destination is required");
  return { sourcePaths, destination, username };
}

// A null field counts as absent.
function parseObject(text: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw invalid(asError(error).message);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw invalid("not an object");
  return Object.fromEntries(Object.entries(value).filter(([, field]) => field !== null));
}

function isStringList(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}

function invalid(reason: string): HttpError {
  return new HttpError(400, `invalid request body: ${reason}`);
}
