/** One line of the egress log of a sandbox. */
export interface EgressRecord {
  /** When the connection, or the question, began. */
  readonly timeMs: number;
  readonly protocol: "dns" | "http" | "icmp" | "other" | "tcp" | "tls" | "udp";
  /** The name that the sandbox asked for; "" when it named none. */
  readonly name: string;
  /** Where the connection led, or was to lead. "" when that was not looked up. */
  readonly address: string;
  readonly port: number;
  readonly sentBytes: number;
  readonly receivedBytes: number;
  readonly verdict: "allowed" | "refused";
  /** The entry of the policy that allowed it, or the reason why it was refused. */
  readonly rule: string;
}

/** Receives the lines of one sandbox. Must not throw. */
export type EgressLog = (record: EgressRecord) => void;
