import type { IncomingMessage, ServerResponse } from "node:http";
import type { AgentState } from "../state.ts";

/** One request and its response. */
export interface Exchange {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly state: AgentState;
}

export type Route = (exchange: Exchange) => Promise<void> | void;

/** An error with its response. Routes throw it, and the pipeline sends it. */
export class HttpError extends Error {
  readonly status: number;
  readonly form: "json" | "text" | "empty";
  constructor(status: number, message: string, form: "json" | "text" | "empty" = "json") {
    super(message);
    this.name = "HttpError";
    this.status = status;
    this.form = form;
  }
}

export function sendError(res: ServerResponse, error: HttpError): void {
  if (error.form === "empty") {
    res.writeHead(error.status, { "Content-Length": "0" }).end();
  } else if (error.form === "text") {
    res.setHeader("X-Content-Type-Options", "nosniff");
    send(res, error.status, "text/plain; charset=utf-8", `${error.message}\n`);
  } else {
    res.setHeader("X-Content-Type-Options", "nosniff");
    send(res, error.status, "application/json; charset=utf-8", `${JSON.stringify({ code: error.status, message: error.message })}\n`);
  }
}

export function sendJson(res: ServerResponse, value: unknown): void {
  send(res, 200, "application/json", `${JSON.stringify(value)}\n`);
}

/** Sends a 204: no body, and an explicitly empty Content-Type. */
export function sendNothing(res: ServerResponse): void {
  res.writeHead(204, { "Cache-Control": "no-store", "Content-Type": "" }).end();
}

/** Sends a 202: a part of the work continues. */
export function sendAccepted(res: ServerResponse): void {
  res.writeHead(202, { "Cache-Control": "no-store", "Content-Length": "0" }).end();
}

function send(res: ServerResponse, status: number, type: string, text: string): void {
  res.writeHead(status, { "Content-Type": type, "Content-Length": Buffer.byteLength(text) }).end(text);
}

/** The value of a query parameter that may occur once; undefined when absent. */
export function single(query: URLSearchParams, name: string): string | undefined {
  const values = query.getAll(name);
  if (values.length > 1)
    throw new HttpError(400, `Invalid format for parameter ${name}: multiple values for single value parameter '${name}'`, "text");
  return values[0];
}
