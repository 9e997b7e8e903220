import type { Duplex } from "node:stream";
import type { Logger } from "@skerry/base";
import { reset } from "./reset.ts";

/** A mistake of ours costs one connection, not all of them. */
export function failConnection(logger: Logger, client: Duplex, err: unknown): void {
  logger.error({ err }, "serving a request failed");
  reset(client);
}
