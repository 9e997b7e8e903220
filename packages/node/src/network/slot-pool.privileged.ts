// Keeps network slots ready for creates, and reuses them after their sandbox has ended. A released slot goes to the end of the queue, so
// that its address is reused as late as possible.

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
  /** Number of slots that are kept ready. Released slots beyond twice this number are removed. */
  readonly ready: number;
  /** Numbers of slots that are in use or kept. All pools of the node share the set. */
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

  /** Number of slots that are prepared and free. */
  get readyCount(): number {
    return this.#ready.length;
  }

  /** Fills the pool. Later refills run in the background of creates. */
  async start(): Promise<void> {
    this.#scheduleRefill();
    await this.#refill;
  }

  async acquire(): Promise<NetworkSlot> {
    const slot = this.#ready.shift() ?? (await this.#create());
    this.#scheduleRefill();
    return slot;
  }

  /** Creates a slot with a number that `release` kept. */
  async acquireNumber(number: number): Promise<NetworkSlot> {
    try {
      return await this.#createNumbered(number);
    } catch (error) {
      await this.#takeDown(number);
      throw error;
    }
  }

  /** Frees a number that was kept. */
  releaseNumber(number: number): void {
    this.#options.taken.delete(number);
  }

  /**
   * Preconditions: no process of the sandbox is left. Never throws: a slot that cannot be reused is removed.
   * With `keepsNumber` the slot is removed, and its number stays reserved.
   */
  async release(slot: NetworkSlot, options: { keepsNumber?: boolean } = {}): Promise<void> {
    const { names, policy, logger } = this.#options;
    try {
      await policy.release(slot);
    } catch (error) {
      // The firewall still has rules for the former sandbox of this slot. Neither address nor interface is reused before the next start.
      logger.error({ slot: slot.number, err: asError(error) }, "network slot not reused: its rules could not be removed");
      return;
    }
    try {
      if (options.keepsNumber) return void (await this.#takeDown(slot.number));
      if (this.#hasRoom() && this.#isCurrent(slot)) {
        await readdressSlot(slot, names);
        // Other slots may have been released meanwhile.
        if (this.#hasRoom()) {
          this.#ready.push(slot);
          return;
        }
      }
    } catch (error) {
      logger.warn({ slot: slot.number, err: asError(error) }, "network slot not reused");
    }
    await this.#destroy(slot.number);
  }

  /** Stops refilling. The slots stay. The next start and the clean-up find them by name. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#refill;
  }

  /** False for a slot of a former process that had another setting for IPv6. */
  #isCurrent({ addresses }: NetworkSlot): boolean {
    return (addresses.ipv6 === undefined) === (this.#options.addresses.ipv6 === undefined);
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
          // The next create fails in the same way, and tells its caller.
          this.#options.logger.error({ err: asError(error) }, "preparing a network slot failed");
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
    // If the removal fails, the number stays reserved, so that no new slot collides with the leftovers. The next start removes them.
    if (await this.#takeDown(number)) this.#options.taken.delete(number);
  }

  async #takeDown(number: number): Promise<boolean> {
    const { names, usernsDir, logger } = this.#options;
    try {
      await destroySlot({ number, names, usernsDir });
      return true;
    } catch (error) {
      logger.error({ slot: number, err: asError(error) }, "removing a network slot failed");
      return false;
    }
  }
}
