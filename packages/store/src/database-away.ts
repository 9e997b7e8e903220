/** System errors: the server cannot be reached. */
const NO_CONNECTION = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "EPIPE",
  "ETIMEDOUT",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTFOUND",
  "EAI_AGAIN",
  "ENOENT",
]);
/** PostgreSQL errors (appendix A): the server stops, starts, or accepts no more connections. Class 08 contains the connection errors. */
const NOT_NOW = /^(?:08\w{3}|57P0[123]|53300)$/;
/** Errors of the client library, which have no code. */
const CLIENT_WORDS = /Connection terminated|timeout exceeded when trying to connect|Client has encountered a connection error/;

/** Whether an operation failed because the database cannot be reached now. A change may have been made nevertheless. */
export function isDatabaseAway(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error instanceof AggregateError && error.errors.some(isDatabaseAway)) return true;
  const code = String((error as { code?: unknown }).code ?? "");
  return NO_CONNECTION.has(code) || NOT_NOW.test(code) || CLIENT_WORDS.test(error.message);
}
