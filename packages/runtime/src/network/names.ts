// Everything that a platform puts on the host's network carries its instance (4 hex digits), so that platforms stand side
// by side and what a crash left behind is found by name. Interface names hold 15 characters at most.

export interface NetworkNames {
  /** nftables table, family inet. */
  readonly table: string;
  /** Every host-side interface of a slot starts with this. */
  readonly interfacePrefix: string;
  namespace(slot: number): string;
  hostInterface(slot: number): string;
  /** The slot number of a namespace of ours, undefined for anybody else's. */
  slotOf(namespace: string): number | undefined;
}

export function networkNames(instance: string): NetworkNames {
  if (!/^[0-9a-f]{4}$/.test(instance)) throw new Error(`an instance is 4 hex digits, not "${instance}"`);
  const namespacePattern = new RegExp(`^sk${instance}-(\\d{1,5})$`);
  return {
    table: `skerry_${instance}`,
    interfacePrefix: `sk${instance}v`,
    namespace: (slot) => `sk${instance}-${slot}`,
    hostInterface: (slot) => `sk${instance}v${slot}`,
    slotOf: (namespace) => {
      const match = namespacePattern.exec(namespace);
      return match ? Number(match[1]) : undefined;
    },
  };
}
