// The bandwidth of a sandbox: a token bucket (HTB) at each end of its link, which delays packets instead of dropping them. The ends are in
// network namespaces in which no sandbox has the right to change them. The API inside the sandbox passes unlimited: the platform needs it
// to pause and to kill a sandbox that sends as much as it can.

/** What the queue of one direction needs. */
export interface LinkEnd {
  readonly device: string;
  readonly mbps: number;
  /** Whether gVisor writes into the queue. */
  readonly isGuestEnd: boolean;
  /** A match of tc's u32 classifier for what is not limited. */
  readonly unlimited: string;
}

/** Of what is not limited. tc needs a number. */
const UNLIMITED_MBPS = 100_000;
const BYTES_PER_MBIT = 1_000_000 / 8;
/** A packet that is cut into many only when it leaves the host has up to 64 KiB, and a few of them must fit. */
const MIN_BURST_BYTES = 65_536;
const MIN_QUEUE_BYTES = 262_144;
const MIN_QUEUE_PACKETS = 32;
const PACKET_BYTES = 32_768;
/** What is sent at once after a pause, and what waits at most, in seconds of the bandwidth. */
const BURST_SECONDS = 0.01;
const QUEUE_SECONDS = 0.05;
/** Of bytes that a class sends in its turn. Given, because tc derives a value from the rate that the kernel complains about. */
const QUANTUM_BYTES = 60_000;

/** Lines for `tc -batch`, which replace what the device had. */
export function bandwidthLines({ device, mbps, isGuestEnd, unlimited }: LinkEnd): string[] {
  const bytes = (seconds: number, least: number) => Math.round(Math.max(least, mbps * BYTES_PER_MBIT * seconds));
  // gVisor gives up all packets that it was about to send when the kernel refuses one, also those of the API inside the sandbox. A queue that
  // drops its oldest packet never refuses one.
  const queue = isGuestEnd
    ? `pfifo_head_drop limit ${Math.max(MIN_QUEUE_PACKETS, Math.ceil(bytes(QUEUE_SECONDS, 0) / PACKET_BYTES))}`
    : `bfifo limit ${bytes(QUEUE_SECONDS, MIN_QUEUE_BYTES)}`;
  const burst = bytes(BURST_SECONDS, MIN_BURST_BYTES);
  return [
    // The kernel does not replace a token bucket by another one.
    `qdisc replace dev ${device} root pfifo`,
    `qdisc replace dev ${device} root handle 1: htb default 2`,
    `class add dev ${device} parent 1: classid 1:1 htb rate ${UNLIMITED_MBPS}mbit quantum ${QUANTUM_BYTES}`,
    `class add dev ${device} parent 1: classid 1:2 htb rate ${mbps}mbit burst ${burst} cburst ${burst} quantum ${QUANTUM_BYTES}`,
    `qdisc add dev ${device} parent 1:2 ${queue}`,
    `filter add dev ${device} parent 1: protocol ip prio 1 u32 match ip protocol 6 0xff ${unlimited} flowid 1:1`,
  ];
}
