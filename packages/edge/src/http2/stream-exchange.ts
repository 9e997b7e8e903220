import type { ServerHttp2Stream } from "node:http2";
import type { Duplex } from "node:stream";
import type { Framing } from "../forwarding/headers.ts";
import type { StreamHead } from "./stream-head.ts";

/** An HTTP/2 request and the connection that it is forwarded on. */
export interface StreamExchange {
  readonly stream: ServerHttp2Stream;
  readonly head: StreamHead;
  readonly upstream: Duplex;
  readonly path: string;
  /** Replaces the Host of the request. */
  readonly maskedHost?: string | undefined;
  /** What precedes the path in the client's address. */
  readonly prefix?: string | undefined;
  readonly framing: Framing;
  readonly maxHeaderBytes: number;
  /** Fields that are added to the request. */
  readonly extraHeaders?: readonly string[];
  /** Called if the upstream connection breaks before a response. Nothing has been sent to the client by then. */
  readonly onBroken: (error: Error) => void;
  /** Called on an internal error. Resets the stream. */
  readonly onFault: (error: unknown) => void;
}
