import type { ServerHttp2Stream } from "node:http2";
import type { Forwarding } from "../forwarding/forward.ts";
import type { StreamHead } from "./stream-head.ts";

/** An HTTP/2 request and the connection that it is forwarded on. */
export interface StreamExchange extends Forwarding {
  readonly stream: ServerHttp2Stream;
  readonly head: StreamHead;
  /** Called if the upstream connection breaks before a response. Nothing has been sent to the client by then. */
  readonly onBroken: (error: Error) => void;
  /** Called on an internal error. Resets the stream. */
  readonly onFault: (error: unknown) => void;
}
