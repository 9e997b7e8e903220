// Where a connection was going before the host's firewall redirected it.

import type { Socket } from "node:net";
import koffi from "koffi";

const libc = koffi.load("libc.so.6");
const getsockoptFn = libc.func("int getsockopt(int fd, int level, int name, _Out_ uint8_t *value, _Inout_ uint32_t *length)");

// From linux/in.h and linux/netfilter_ipv4.h.
const SOL_IP = 0;
const SO_ORIGINAL_DST = 80;
/** struct sockaddr_in: family, port, address, padding. */
const ADDRESS_BYTES = 16;

export interface Destination {
  /** IPv4. */
  readonly address: string;
  readonly port: number;
}

/** Undefined for a connection that was not redirected, or has ended. */
export function originalDestination(socket: Socket): Destination | undefined {
  const fd = descriptorOf(socket);
  if (fd === undefined) return undefined;
  const value = new Uint8Array(ADDRESS_BYTES);
  if (getsockoptFn(fd, SOL_IP, SO_ORIGINAL_DST, value, [ADDRESS_BYTES]) !== 0) return undefined;
  const view = Buffer.from(value.buffer);
  return { address: [...view.subarray(4, 8)].join("."), port: view.readUInt16BE(2) };
}

/** Node.js shows the descriptor of a connection nowhere else. */
function descriptorOf(socket: Socket): number | undefined {
  const { _handle: handle } = socket as unknown as { readonly _handle?: { readonly fd?: number } | null };
  return handle?.fd !== undefined && handle.fd >= 0 ? handle.fd : undefined;
}
