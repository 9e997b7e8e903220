import { waitUntil } from "@skerry/testkit/wait-until";

export interface StreamedEvent {
  readonly id: number;
  readonly event: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into JSON of any shape.
  readonly data: any;
}

/** Reads an event stream in the background. */
export class OpenStream implements AsyncDisposable {
  readonly status: number;
  /** Resolves when the server has ended the stream. */
  readonly ended: Promise<void>;
  readonly #events: StreamedEvent[] = [];
  readonly #abort: AbortController;
  #signs = 0;
  #taken = 0;

  constructor(response: Response, abort: AbortController) {
    this.status = response.status;
    this.#abort = abort;
    this.ended = this.#read(response).catch(() => {});
  }

  /** The events that have come and were not taken. */
  get count(): number {
    return this.#events.length - this.#taken;
  }

  async take(count: number): Promise<readonly StreamedEvent[]> {
    await waitUntil(`${count} events came`, () => this.count >= count);
    this.#taken += count;
    return this.#events.slice(this.#taken - count, this.#taken);
  }

  /** Waits for the next sign of life. */
  async alive(): Promise<void> {
    const before = this.#signs;
    await waitUntil("the stream is alive", () => this.#signs > before);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#abort.abort();
    await this.ended;
  }

  async #read(response: Response): Promise<void> {
    if (response.status !== 200) return;
    let text = "";
    for await (const part of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += part;
      for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
        this.#take(text.slice(0, end));
        text = text.slice(end + 2);
      }
    }
  }

  #take(block: string): void {
    if (block.startsWith(":")) this.#signs += 1;
    const fields = new Map(block.split("\n").map((line) => [line.slice(0, line.indexOf(": ")), line.slice(line.indexOf(": ") + 2)]));
    const data = fields.get("data");
    if (data !== undefined) this.#events.push({ id: Number(fields.get("id")), event: fields.get("event") ?? "", data: JSON.parse(data) });
  }
}

export async function openStream(url: string, headers: Record<string, string>, stack?: AsyncDisposableStack): Promise<OpenStream> {
  const abort = new AbortController();
  const stream = new OpenStream(await fetch(url, { headers, signal: abort.signal }), abort);
  stack?.use(stream);
  return stream;
}
