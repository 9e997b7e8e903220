import { ArchiveError } from "../errors.ts";

/** Records of an extended header. Keys and values have one character per byte. */
export type PaxRecords = ReadonlyMap<string, string>;

/** `<length> <key>=<value>\n`, where the length counts the whole record. */
export function parsePax(bytes: Buffer): PaxRecords {
  const records = new Map<string, string>();
  for (let at = 0; at < bytes.length; ) {
    const space = bytes.indexOf(0x20, at);
    const digits = bytes.toString("latin1", at, Math.max(at, space));
    const end = at + Number(digits);
    const equals = bytes.indexOf(0x3d, space);
    const isRecord = /^\d{1,9}$/.test(digits) && end <= bytes.length && equals > space && equals < end && bytes[end - 1] === 0x0a;
    if (!isRecord) throw new ArchiveError("the archive is damaged: an extended header");
    records.set(bytes.toString("latin1", space + 1, equals), bytes.toString("latin1", equals + 1, end - 1));
    at = end;
  }
  return records;
}

export function paxNumber(records: PaxRecords, key: string): number | undefined {
  const text = records.get(key);
  if (text === undefined || text === "") return undefined;
  const value = Number(text);
  if (!/^-?\d{1,18}(\.\d*)?$/.test(text) || !Number.isFinite(value)) throw new ArchiveError(`the archive is damaged: the number ${key}`);
  return value;
}
