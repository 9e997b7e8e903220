// The egress logs of this node's sandboxes: what passes through the egress proxy, and what the kernel knows of the rest.

import { asError, type Logger } from "@skerry/base";
import type { NetworkNames, NetworkSlot } from "@skerry/runtime";
import type { EgressRecord } from "../egress/egress-record.ts";
import { type EgressBatch, EgressBook } from "./egress-book.ts";
import { KernelEgress } from "./kernel-egress.privileged.ts";
import type { SandboxPrefixes } from "./netfilter-messages.ts";

type Slot = Pick<NetworkSlot, "addresses" | "hostInterface">;

export interface EgressLogDeps {
  readonly names: NetworkNames;
  /** Where the last lines wait for the next start. */
  readonly file: string;
  readonly logger: Logger;
}

export class EgressLog {
  readonly #deps: EgressLogDeps;
  readonly #book: EgressBook;
  readonly #kernel: KernelEgress;

  constructor(deps: EgressLogDeps) {
    this.#deps = deps;
    this.#book = new EgressBook(deps.file);
    this.#kernel = new KernelEgress({ ...deps, book: this.#book });
  }

  /** Preconditions: the firewall is in place. */
  start(prefixes: SandboxPrefixes): void {
    this.#kernel.start(prefixes);
  }

  /** A container got a slot. It has no sandbox yet if the id is empty. */
  arrive(slot: Slot, sandboxId: string): void {
    this.#kernel.arrive(slot);
    this.#book.arrive(slot.addresses.guest, sandboxId);
  }

  /** The container of a slot belongs to a sandbox. */
  own({ addresses }: Slot, sandboxId: string): void {
    this.#book.own(addresses.guest, sandboxId);
  }

  /** Takes a line of the egress proxy. */
  record(address: string, record: EgressRecord): void {
    this.#book.record(address, record);
  }

  /** The sandbox of a slot has ended, and its connections are forgotten. */
  leave({ hostInterface }: Slot): void {
    this.#kernel.settle(hostInterface);
  }

  read(stored: { readonly source: string; readonly number: number }): EgressBatch | undefined {
    return this.#book.read(stored);
  }

  /** Failure policy: on a full disk the last seconds of the logs are lost. */
  close(): void {
    this.#kernel.close();
    try {
      this.#book.close();
    } catch (error) {
      this.#deps.logger.warn({ err: asError(error) }, "the last lines of the egress logs could not be kept");
    }
  }
}
