import type { Socket } from "node:net";
import { recordPastSpan, TRACE_HEADER, tracedWithin, traceHeader } from "@skerry/telemetry";
import { type AgentAnswer, type AgentRequest, exchange } from "./exchange.ts";

/**
 * Like `exchange`, and a part of the current trace. The agent can't send spans: it reaches no receiver, and must know no address of one. So
 * it says how long the request took. A guest in its place may say anything, so the time is cut to what the node has measured.
 */
export function tracedExchange(socket: Socket, asked: AgentRequest, limits: { readonly timeoutMs: number }): Promise<AgentAnswer> {
  const name = `${asked.method} ${asked.path}`;
  return tracedWithin({ name: `agent ${name}`, kind: "client" }, async () => {
    const header = traceHeader();
    if (header === undefined) return await exchange(socket, asked, limits);
    const startedAt = performance.now();
    const answer = await exchange(socket, { ...asked, headers: { ...asked.headers, [TRACE_HEADER]: header } }, limits);
    const tookMs = durationIn(answer.serverTiming);
    if (tookMs !== undefined) {
      recordPastSpan({ name, kind: "server", facts: { "skerry.part": "agent" } }, Math.min(tookMs, performance.now() - startedAt));
    }
    return answer;
  });
}

/** The duration in a header `Server-Timing` of our agent, in milliseconds; undefined for anything else. */
export function durationIn(header: string | undefined): number | undefined {
  const [, duration] = /^init;dur=(\d{1,6}(?:\.\d{1,3})?)$/.exec(header ?? "") ?? [];
  return duration === undefined ? undefined : Number(duration);
}
