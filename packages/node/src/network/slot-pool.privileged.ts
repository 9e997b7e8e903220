// Network slots made ahead of time, so that a create finds one ready, and used again after their sandbox has ended.
// A released slot goes to the end of the line: an address comes back as late as possible.

import { asError, type Logger } from "@skerry/base";
import { type AddressPlan, createSlot, destroySlot, type NetworkNames, type NetworkSlot, readdressSlot } from "@skerry/runtime";
import type { NetworkPolicy } from "./network-policy.ts";

export interface SlotPoolOptions {
  readonly names: NetworkNames;
  readonly policy: NetworkPolicy;
  readonly addresses: AddressPlan;
  readonly usernsDir: string;
  /** Whether slots get a user namespace. */
  readonly withUserNamespace: boolean;
  /** Slots kept ready; above twice of it released ones are taken down. */
  readonly ready: number;
  /** Shared by all pools of the node: numbers that are in use in any way. */
  readonly taken: Set<number>;
  readonly logger: Logger;
}

export class SlotPool {
  readonly #options: SlotPoolOptions;
  readonly #ready: NetworkSlot[] = [];
  #refill: Promise<void> = Promise.resolve();
  #closed = false;

  constructor(options: SlotPoolOptions) {
    this.#options = options;
  }

  /** Slots that are prepared and free. */
  get readyCount(): number {
    return this.#ready.length;
  }

  /** Fills the pool; later refills run behind the creates. */
  async start(): Promise<void> {
    this.#scheduleRefill();
    await this.#refill;
  }

  async acquire(): Promise<NetworkSlot> {
    const slot = this.#ready.shift() ?? (await this.#create());
    this.#scheduleRefill();
    return slot;
  }

  /** A slot of a number that was kept by `release`. */
  async acquireNumber(number: number): Promise<NetworkSlot> {
    try {
      return await this.#createNumbered(number);
    } catch (error) {
      await this.#takeDown(number);
      throw error;
    }
  }

  /** Gives up a number that was kept. */
  releaseNumber(number: number): void {
    this.#options.taken.delete(number);
  }

  /**
   * Preconditions: no process of the sandbox is left. Never throws: a slot that can't be used again is taken down.
   * With `keepsNumber` it is taken down, and nobody else gets its number.
   */
  async release(slot: NetworkSlot, options: { keepsNumber?: boolean } = {}): Promise<void> {
    const { names, policy, logger } = this.#options;
    try {
      await policy.release(slot);
    } catch (error) {
      // Its address and its mark in the firewall still mean the former sandbox: neither is given to anybody until the next start.
      logger.error({ slot: slot.number, err: asError(error) }, "network slot stays out of use");
      return;
    }
    try {
      if (options.keepsNumber) return void (await this.#takeDown(slot.number));
      if (this.#hasRoom()) {
        await readdressSlot(slot, names);
        // Others may have come back meanwhile.
        if (this.#hasRoom()) {
          this.#ready.push(slot);
          return;
        }
      }
    } catch (error) {
      logger.warn({ slot: slot.number, err: asError(error) }, "network slot could not be used again");
    }
    await this.#destroy(slot.number);
  }

  /** Stops refilling. The slots stay for the next start or for the clean-up, which find them by name. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#refill;
  }

  #hasRoom(): boolean {
    return !this.#closed && this.#ready.length < this.#options.ready * 2;
  }

  #scheduleRefill(): void {
    this.#refill = this.#refill.then(async () => {
      while (!this.#closed && this.#ready.length < this.#options.ready) {
        try {
          this.#ready.push(await this.#create());
        } catch (error) {
          // The next create meets the same fault and reports it to its caller.
          this.#options.logger.error({ err: asError(error) }, "network slot could not be prepared");
          return;
        }
      }
    });
  }

  async #create(): Promise<NetworkSlot> {
    const { taken } = this.#options;
    let number = 0;
    while (taken.has(number)) number += 1;
    taken.add(number);
    try {
      return await this.#createNumbered(number);
    } catch (error) {
      await this.#destroy(number);
      throw error;
    }
  }

  #createNumbered(number: number): Promise<NetworkSlot> {
    const { names, addresses, usernsDir, withUserNamespace } = this.#options;
    return createSlot({ number, names, addresses: addresses.of(number), ...(withUserNamespace ? { usernsDir } : {}) });
  }

  async #destroy(number: number): Promise<void> {
    // Where it can't be taken down the number stays taken, so nothing else meets its remains; the next start clears them.
    if (await this.#takeDown(number)) this.#options.taken.delete(number);
  }

  async #takeDown(number: number): Promise<boolean> {
    const { names, usernsDir, logger } = this.#options;
    try {
      await destroySlot({ number, names, usernsDir });
      return true;
    } catch (error) {
      logger.error({ slot: number, err: asError(error) }, "network slot could not be taken down");
      return false;
    }
  }
}
