// Names of everything that a platform creates on the host's network. They contain the instance (4 hex digits), so that several platforms
// can share a host and the remains of a crash are found by name. Interface names have at most 15 characters.

export interface NetworkNames {
  /** Name of the nftables table, family inet. */
  readonly table: string;
  /** Prefix of the host-side interfaces of slots. */
  readonly interfacePrefix: string;
  /** Group of the kernel's log to which the firewall writes what it refuses. */
  readonly logGroup: number;
  namespace(slot: number): string;
  hostInterface(slot: number): string;
  /** The slot number of a namespace; undefined when the namespace does not belong to this instance. */
  slotOf(namespace: string): number | undefined;
}

export function networkNames(instance: string): NetworkNames {
  if (!/^[0-9a-f]{4}$/.test(instance)) throw new Error(`an instance is 4 hex digits, not "${instance}"`);
  const namespacePattern = new RegExp(`^sk${instance}-(\\d{1,5})$`);
  return {
    table: `skerry_${instance}`,
    interfacePrefix: `sk${instance}v`,
    logGroup: Number.parseInt(instance, 16),
    namespace: (slot) => `sk${instance}-${slot}`,
    hostInterface: (slot) => `sk${instance}v${slot}`,
    slotOf: (namespace) => {
      const match = namespacePattern.exec(namespace);
      return match ? Number(match[1]) : undefined;
    },
  };
}
