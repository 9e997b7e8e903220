/** Where the kernel hears only of changes made on this machine: the numbers that statfs(2) gives for them. */
const NETWORK_TYPES: ReadonlyMap<number, string> = new Map([
  [0x6969, "NFS"],
  [0xff534d42, "CIFS"],
  [0x517b, "SMB"],
  [0xfe534d42, "SMB2"],
  [0x65735546, "FUSE"],
]);

export function isNetworkFileSystem(type: number): boolean {
  // Some systems give the number with its sign.
  return NETWORK_TYPES.has(type >>> 0);
}
