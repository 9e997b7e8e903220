// The events of inotify(7): byte layout and mask bits.

/** The mask bits that the agent uses. It never asks for events of opening, reading or closing. */
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
  /** Only in requests: the path must be a directory. */
  ONLYDIR: 0x0100_0000,
  /** Only in requests: a symbolic link at the end of the path is not followed. */
  DONT_FOLLOW: 0x0200_0000,
  ISDIR: 0x4000_0000,
} as const;

export interface InotifyEvent {
  readonly wd: number;
  readonly mask: number;
  /** Equal in the two events of one rename; 0 otherwise. */
  readonly cookie: number;
  /** One character per byte, because names need not be UTF-8. Empty when the event concerns the watched directory itself. */
  readonly name: string;
}

const HEADER_BYTES = 16;

export function parseInotifyEvents(bytes: Buffer): InotifyEvent[] {
  const events: InotifyEvent[] = [];
  for (let at = 0; at + HEADER_BYTES <= bytes.length; ) {
    const nameStart = at + HEADER_BYTES;
    const end = nameStart + bytes.readUInt32LE(at + 12);
    // The name is padded with zeros up to `end`.
    const nul = bytes.indexOf(0, nameStart);
    const name = bytes.toString("latin1", nameStart, nul < 0 || nul > end ? end : nul);
    events.push({ wd: bytes.readInt32LE(at), mask: bytes.readUInt32LE(at + 4), cookie: bytes.readUInt32LE(at + 8), name });
    at = end;
  }
  return events;
}
