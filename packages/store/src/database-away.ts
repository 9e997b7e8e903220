/** Of the system: there is no way to the server. */
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
/** Of PostgreSQL (appendix A): it stops, it starts, or it takes no more connections. Class 08 is all about connections. */
const NOT_NOW = /^(?:08\w{3}|57P0[123]|53300)$/;
/** Of the client, which gives these no code. */
const CLIENT_WORDS = /Connection terminated|timeout exceeded when trying to connect|Client has encountered a connection error/;

/** Whether something failed because the database can't be reached now. What it was about may have been done, unless nothing was to be changed. */
export function isDatabaseAway(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error instanceof AggregateError && error.errors.some(isDatabaseAway)) return true;
  const code = String((error as { code?: unknown }).code ?? "");
  return NO_CONNECTION.has(code) || NOT_NOW.test(code) || CLIENT_WORDS.test(error.message);
}
