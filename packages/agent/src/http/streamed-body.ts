import { createContextKey } from "@connectrpc/connect";

/** A response body that replaces the handler's message. It is already encoded as the request asks. */
export interface StreamedBody {
  readonly pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>;
  /** Undefined when the length is not known in advance. */
  readonly bytes: number | undefined;
}

/** Set by the handler of a unary call. Used only for a response with status 200. */
export const streamedBodyKey = createContextKey<StreamedBody | undefined>(undefined, { description: "the body of a response" });
