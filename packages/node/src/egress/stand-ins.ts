// Addresses that stand for names. The names that a sandbox with a proxy of its own asks for are looked up by that proxy, so the name server
// answers with an address that means nothing outside, and a connection to it is a connection to the name.

import { createHash } from "node:crypto";
import { isInRanges, parseIpv4Range } from "@skerry/wire";

/** No destination: it is of a range for benchmarks, which is closed to every sandbox. */
const [FIRST, SIZE] = ["198.19", 65_536];
/** Names of one sandbox. The name that was asked for least recently is forgotten. */
const MAX_NAMES = 4_096;

const range = parseIpv4Range(`${FIRST}.0.0/16`);
/** The addresses of all stand-ins. */
export const STAND_INS = range ? [range] : [];

export function isStandIn(address: string): boolean {
  return isInRanges(STAND_INS, address);
}

/** The stand-ins of one sandbox. */
export class StandIns {
  /** Both in the order of the last question. */
  readonly #numbers = new Map<string, number>();
  readonly #names = new Map<number, string>();

  /**
   * The stand-in for a name. It follows from the name if no other name has it, so that an answer which a program has kept usually holds after
   * a restart of the node.
   */
  addressOf(name: string): string {
    const number = this.#numbers.get(name) ?? this.#freeNumber(name);
    this.#numbers.delete(name);
    this.#numbers.set(name, number);
    this.#names.set(number, name);
    const [oldest] = this.#numbers;
    if (this.#numbers.size > MAX_NAMES && oldest) {
      this.#numbers.delete(oldest[0]);
      this.#names.delete(oldest[1]);
    }
    return `${FIRST}.${number >> 8}.${number & 255}`;
  }

  nameOf(address: string): string | undefined {
    if (!isStandIn(address)) return undefined;
    const [third = 0, fourth = 0] = address.split(".").slice(2).map(Number);
    return this.#names.get(256 * third + fourth);
  }

  #freeNumber(name: string): number {
    let number = createHash("sha256").update(name).digest().readUInt16BE(0);
    while (this.#names.has(number)) number = (number + 1) % SIZE;
    return number;
  }
}
