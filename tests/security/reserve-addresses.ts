// Addresses for simulated networks that no network of this machine has, and no other test.

import { randomInt } from "node:crypto";
import { readFileSync } from "node:fs";
import { networkInterfaces } from "node:os";
import { runCommand, SubprocessError } from "@skerry/base";

export interface Reservation {
  readonly namespace: string;
  readonly addresses: readonly string[];
}

/**
 * Creates the network namespace of one of the candidates. Its name reserves the addresses: another test that draws the same candidate cannot
 * create it. The caller deletes it.
 */
export async function reserveAddresses<Candidate extends Reservation>(candidates: readonly Candidate[]): Promise<Candidate> {
  const start = randomInt(candidates.length);
  for (const candidate of [...candidates.slice(start), ...candidates.slice(0, start)]) {
    if (candidate.addresses.some((address) => isOfMachine(address)) || !(await addNamespace(candidate.namespace))) continue;
    return candidate;
  }
  throw new Error(`all ${candidates.length} addresses for a simulated network are taken`);
}

/** Whether the machine has this IPv4 address, or a route to it other than its default route. */
export function isOfMachine(address: string): boolean {
  const wanted = numberOf(address);
  const own = Object.values(networkInterfaces()).flatMap((of) => of ?? []);
  if (own.some((one) => one.family === "IPv4" && isSameNetwork(wanted, numberOf(one.address), numberOf(one.netmask)))) return true;
  const [, ...routes] = readFileSync("/proc/net/route", "utf8").trim().split("\n");
  return routes.some((line) => {
    const [, destination = "", , , , , , mask = ""] = line.split(/\s+/);
    return mask !== "00000000" && isSameNetwork(wanted, fromKernel(destination), fromKernel(mask));
  });
}

async function addNamespace(name: string): Promise<boolean> {
  try {
    await runCommand("ip", ["netns", "add", name]);
    return true;
  } catch (error) {
    if (error instanceof SubprocessError && error.stderr.includes("File exists")) return false;
    throw error;
  }
}

const isSameNetwork = (one: number, other: number, mask: number) => (one & mask) === (other & mask);
const numberOf = (address: string) => Buffer.from(address.split(".").map(Number)).readInt32BE();
/** The kernel prints the bytes of an address in the machine's order, which is little-endian on all supported processors. */
const fromKernel = (hex: string) => Buffer.from(hex, "hex").readInt32LE();
