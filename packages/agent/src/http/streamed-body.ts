import { createContextKey } from "@connectrpc/connect";

/** What a handler answers with instead of its message, encoded already as the request asks for it. */
export interface StreamedBody {
  readonly pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>;
  /** Undefined: not known before its end. */
  readonly bytes: number | undefined;
}

/** Set by the handler of a unary call. Counts for an answer with status 200 only. */
export const streamedBodyKey = createContextKey<StreamedBody | undefined>(undefined, { description: "the body of an answer" });
