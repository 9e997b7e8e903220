import type { Duplex } from "node:stream";
import type { Logger } from "@skerry/base";
import { reset } from "./reset.ts";

/** Logs an internal error and resets the one connection that it affects. */
export function failConnection(logger: Logger, client: Duplex, err: unknown): void {
  logger.error({ err }, "serving a request failed");
  reset(client);
}
