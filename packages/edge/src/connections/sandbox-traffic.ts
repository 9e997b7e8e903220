import type { Duplex } from "node:stream";
import { sandboxBytes, sandboxConnections } from "../metrics.ts";

/** A socket counts its bytes. Other streams, which only tests use, do not. */
type Counting = Duplex & { readonly bytesRead?: number; readonly bytesWritten?: number };

/** Counts the open connections to sandboxes and their bytes, when the metrics are read: nothing is counted for each chunk. */
export class SandboxTraffic {
  readonly #open = new Set<Counting>();
  /** Bytes of the closed connections. */
  #to = 0;
  #from = 0;

  follow(stream: Counting): void {
    this.#open.add(stream);
    stream.once("close", () => {
      if (!this.#open.delete(stream)) return;
      this.#to += stream.bytesWritten ?? 0;
      this.#from += stream.bytesRead ?? 0;
    });
  }

  /** Returns a function that ends it. */
  observe(): () => void {
    const sum = (read: (stream: Counting) => number | undefined) => [...this.#open].reduce((all, stream) => all + (read(stream) ?? 0), 0);
    const stops = [
      sandboxConnections.observe(() => [{ value: this.#open.size }]),
      sandboxBytes.observe(() => [
        { value: this.#to + sum(({ bytesWritten }) => bytesWritten), labels: { direction: "to_sandbox" } },
        { value: this.#from + sum(({ bytesRead }) => bytesRead), labels: { direction: "from_sandbox" } },
      ]),
    ];
    return () => {
      for (const stop of stops) stop();
    };
  }
}
