import type { IncomingHttpHeaders } from "node:http";

/** Result of the conditional headers of a download. Files have no ETag, so a tag matches only as `*`. */
export type Condition = "proceed" | "not-modified" | "failed";

export function checkConditions(headers: IncomingHttpHeaders, modifiedMs: number): Condition {
  // HTTP dates are in whole seconds.
  const modified = Math.floor(modifiedMs / 1000) * 1000;
  const ifMatch = headers["if-match"];
  if (ifMatch !== undefined) {
    if (ifMatch.trim() !== "*") return "failed";
  } else {
    const unmodifiedSince = httpDate(headers["if-unmodified-since"]);
    if (unmodifiedSince !== undefined && modified > unmodifiedSince) return "failed";
  }
  const ifNoneMatch = headers["if-none-match"];
  if (ifNoneMatch !== undefined) return ifNoneMatch.trim() === "*" ? "not-modified" : "proceed";
  const modifiedSince = httpDate(headers["if-modified-since"]);
  return modifiedSince !== undefined && modified <= modifiedSince ? "not-modified" : "proceed";
}

/** Whether `If-Range` allows a response with the requested ranges. */
export function rangesApply(headers: IncomingHttpHeaders, modifiedMs: number): boolean {
  const ifRange = headers["if-range"];
  if (ifRange === undefined) return true;
  return httpDate(String(ifRange)) === Math.floor(modifiedMs / 1000) * 1000;
}

function httpDate(text: string | undefined): number | undefined {
  const value = text === undefined ? Number.NaN : Date.parse(text);
  return Number.isNaN(value) ? undefined : value;
}
