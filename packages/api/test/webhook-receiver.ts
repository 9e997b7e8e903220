import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Webhook } from "standardwebhooks";

export interface Received {
  readonly id: string;
  readonly at: number;
  readonly headers: IncomingHttpHeaders;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into JSON of any shape.
  readonly body: any;
}

type Answer = (response: ServerResponse, received: Received) => void;

export const ok: Answer = (response) => void response.writeHead(204).end();
export const failing: Answer = (response) => void response.writeHead(500).end("no");

/** An endpoint that checks every signature, and keeps what it accepted. */
export class Receiver implements AsyncDisposable {
  readonly #server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request
      .on("data", (part) => parts.push(part))
      .on("end", () => this.#receive(request.headers, Buffer.concat(parts).toString(), response));
  });
  readonly requests: Received[] = [];
  readonly accepted: Received[] = [];
  /** Messages without a right signature. */
  readonly forged: string[] = [];
  secret = "";
  answer: Answer = ok;
  /** The most requests that were open at the same time. */
  mostOpen = 0;
  #open = 0;

  static async listen(port = 0): Promise<Receiver> {
    const receiver = new Receiver();
    await new Promise<void>((resolve) => receiver.#server.listen(port, "127.0.0.1", resolve));
    return receiver;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/hook`;
  }

  /** The sequences of what was accepted, each once, in order. */
  get sequences(): readonly number[] {
    return [...new Set(this.accepted.map(({ body }) => body.sequence as number))].toSorted((a, b) => a - b);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #receive(headers: IncomingHttpHeaders, text: string, response: ServerResponse): void {
    this.#open += 1;
    this.mostOpen = Math.max(this.mostOpen, this.#open);
    response.once("close", () => {
      this.#open -= 1;
    });
    try {
      if (this.secret !== "") new Webhook(this.secret).verify(text, headers as Record<string, string>);
    } catch {
      this.forged.push(text);
    }
    const received = { id: String(headers["webhook-id"]), at: performance.now(), headers, body: JSON.parse(text) };
    this.requests.push(received);
    response.once("finish", () => {
      if (response.statusCode < 300) this.accepted.push(received);
    });
    this.answer(response, received);
  }
}
