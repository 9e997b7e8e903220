// The kernel's records of inotify(7), as bytes and bits.

/** Bits of a record's mask that mean something here. Opening, reading and closing are never asked for. */
export const IN = {
  MODIFY: 0x0000_0002,
  ATTRIB: 0x0000_0004,
  MOVED_FROM: 0x0000_0040,
  MOVED_TO: 0x0000_0080,
  CREATE: 0x0000_0100,
  DELETE: 0x0000_0200,
  DELETE_SELF: 0x0000_0400,
  MOVE_SELF: 0x0000_0800,
  UNMOUNT: 0x0000_2000,
  Q_OVERFLOW: 0x0000_4000,
  IGNORED: 0x0000_8000,
  /** Only in requests: the path has to be a directory. */
  ONLYDIR: 0x0100_0000,
  /** Only in requests: the last part of the path is not followed when it is a link. */
  DONT_FOLLOW: 0x0200_0000,
  ISDIR: 0x4000_0000,
} as const;

export interface InotifyEvent {
  readonly wd: number;
  readonly mask: number;
  /** The same for the two halves of one rename; 0 otherwise. */
  readonly cookie: number;
  /** One character per byte: names need not be UTF-8. Empty when it is about the watched directory itself. */
  readonly name: string;
}

const HEADER_BYTES = 16;

export function parseInotifyEvents(bytes: Buffer): InotifyEvent[] {
  const events: InotifyEvent[] = [];
  for (let at = 0; at + HEADER_BYTES <= bytes.length; ) {
    const nameStart = at + HEADER_BYTES;
    const end = nameStart + bytes.readUInt32LE(at + 12);
    // Padded with zeros up to `end`.
    const nul = bytes.indexOf(0, nameStart);
    const name = bytes.toString("latin1", nameStart, nul < 0 || nul > end ? end : nul);
    events.push({ wd: bytes.readInt32LE(at), mask: bytes.readUInt32LE(at + 4), cookie: bytes.readUInt32LE(at + 8), name });
    at = end;
  }
  return events;
}
