// Sends one event to an endpoint, signed as Standard Webhooks describes. The endpoint is not trusted: its answer is bounded in time and
// size, nothing of it but the status is used, and no redirect is followed.

import { Agent as HttpAgent, type IncomingMessage, request as requestHttp } from "node:http";
import { Agent as HttpsAgent, request as requestHttps } from "node:https";
import { isIP } from "node:net";
import type { Secret } from "@skerry/base";
import { Webhook } from "standardwebhooks";
import { type AddressGuard, AddressRefused } from "./address-guard.ts";

/** An endpoint needs to say no more than a status. */
const MAX_ANSWER_BYTES = 64 * 1024;
const MAX_HEADER_BYTES = 16 * 1024;
const MAX_ERROR_LENGTH = 200;

export interface Message {
  /** The same for every attempt: receivers know by it what they have seen. */
  readonly id: string;
  readonly at: Date;
  readonly body: string;
}

export type Sent =
  | { readonly kind: "ok"; readonly status: number }
  /** `isGone`: the endpoint wants nothing any more. */
  | { readonly kind: "failed"; readonly status?: number; readonly error: string; readonly isGone: boolean };

/** The connections to one endpoint. */
export class WebhookSender {
  readonly #guard: AddressGuard;
  readonly #timeoutMs: number;
  readonly #http: HttpAgent;
  readonly #https: HttpsAgent;
  constructor(deps: { readonly guard: AddressGuard; readonly timeoutMs: number; readonly connections: number }) {
    this.#guard = deps.guard;
    this.#timeoutMs = deps.timeoutMs;
    const pool = { keepAlive: true, maxSockets: deps.connections, maxFreeSockets: deps.connections, timeout: 30_000 };
    this.#http = new HttpAgent(pool);
    this.#https = new HttpsAgent(pool);
  }

  async send(url: string, secret: Secret, message: Message): Promise<Sent> {
    const signature = new Webhook(secret.reveal()).sign(message.id, message.at, message.body);
    const headers = {
      "content-type": "application/json",
      "content-length": Buffer.byteLength(message.body),
      "user-agent": "skerry-webhooks",
      "webhook-id": message.id,
      "webhook-timestamp": String(Math.floor(message.at.getTime() / 1000)),
      "webhook-signature": signature,
    };
    try {
      return await this.#exchange(new URL(url), headers, message.body);
    } catch (error) {
      return { kind: "failed", error: describe(error), isGone: false };
    }
  }

  close(): void {
    this.#http.destroy();
    this.#https.destroy();
  }

  async #exchange(url: URL, headers: Record<string, string | number>, body: string): Promise<Sent> {
    const protocol = url.protocol === "https:" ? "https:" : "http:";
    const literal = url.hostname.replace(/^\[|\]$/g, "");
    if (isIP(literal) !== 0 && !this.#guard.allows(literal, protocol)) throw new AddressRefused(url.hostname);
    const signal = AbortSignal.timeout(this.#timeoutMs);
    const options = { method: "POST", headers, signal, maxHeaderSize: MAX_HEADER_BYTES, lookup: this.#guard.lookup(protocol) };
    const { promise, resolve, reject } = Promise.withResolvers<Sent>();
    const onAnswer = (answer: IncomingMessage) => void readAnswer(answer).then(resolve, reject);
    const request =
      protocol === "https:"
        ? requestHttps(url, { ...options, agent: this.#https }, onAnswer)
        : requestHttp(url, { ...options, agent: this.#http }, onAnswer);
    request.on("error", reject);
    request.end(body);
    return await promise;
  }
}

/** Reads the rest of a short answer, so that the connection can be used again, and cuts a long one off. */
async function readAnswer(answer: IncomingMessage): Promise<Sent> {
  const status = answer.statusCode ?? 0;
  let bytes = 0;
  for await (const chunk of answer) {
    bytes += (chunk as Buffer).length;
    if (bytes > MAX_ANSWER_BYTES) {
      answer.destroy();
      return { kind: "failed", status, error: `the answer is longer than ${MAX_ANSWER_BYTES} bytes`, isGone: false };
    }
  }
  if (status >= 200 && status < 300) return { kind: "ok", status };
  const error =
    status >= 300 && status < 400 ? `the endpoint answered ${status}, and redirects are not followed` : `the endpoint answered ${status}`;
  return { kind: "failed", status, error, isGone: status === 410 };
}

/** For the owner of the webhook. It says nothing of an address that was refused, because the owner may be probing the network. */
function describe(error: unknown): string {
  if (!(error instanceof Error)) return "the request failed";
  if (error.name === "TimeoutError" || error.name === "AbortError") return "the endpoint did not answer in time";
  const { code } = error as { code?: string };
  return (code === undefined ? error.message : `the request failed: ${code}`).slice(0, MAX_ERROR_LENGTH);
}
