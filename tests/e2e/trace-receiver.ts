// A receiver of OpenTelemetry traces: OTLP over HTTP, in JSON.

import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";

export interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  /** Undefined or "" for the first span of a trace. */
  readonly parentSpanId?: string;
  readonly name: string;
  /** 1 internal, 2 server, 3 client. */
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: Readonly<Record<string, unknown>>;
  /** The roles of the process that sent it. */
  readonly roles: string;
}

interface Attribute {
  readonly key: string;
  readonly value: Readonly<Record<string, unknown>>;
}

interface ExportRequest {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly Attribute[] };
    readonly scopeSpans: readonly {
      readonly spans: readonly (Omit<ReceivedSpan, "attributes" | "roles"> & { attributes: readonly Attribute[] })[];
    }[];
  }[];
}

export interface TraceReceiver extends AsyncDisposable {
  readonly url: string;
  readonly spans: readonly ReceivedSpan[];
  /** All that was received, as text. */
  text(): string;
}

export async function startTraceReceiver(): Promise<TraceReceiver> {
  const spans: ReceivedSpan[] = [];
  const server = createServer(async (request, response) => {
    if (request.url !== "/v1/traces" || request.headers["content-type"] !== "application/json") return void response.writeHead(404).end();
    const { resourceSpans } = (await json(request)) as ExportRequest;
    for (const { resource, scopeSpans } of resourceSpans) {
      const roles = String(valuesOf(resource.attributes)["skerry.roles"]);
      for (const span of scopeSpans.flatMap((scope) => scope.spans)) spans.push({ ...span, attributes: valuesOf(span.attributes), roles });
    }
    response.writeHead(200, { "Content-Type": "application/json" }).end("{}");
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    text: () => JSON.stringify(spans),
    [Symbol.asyncDispose]: async () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

function valuesOf(attributes: readonly Attribute[] = []): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
}
