export interface PasswdEntry {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
  readonly home: string;
}

export interface GroupEntry {
  readonly name: string;
  readonly gid: number;
  readonly members: readonly string[];
}

/** passwd(5). Skips malformed lines, as the C library does. */
export function parsePasswd(text: string): PasswdEntry[] {
  const entries: PasswdEntry[] = [];
  for (const fields of records(text)) {
    const [name = "", , uidText = "", gidText = "", , home = ""] = fields;
    const uid = parseId(uidText);
    const gid = parseId(gidText);
    if (fields.length < 6 || name === "" || uid === undefined || gid === undefined) continue;
    entries.push({ name, uid, gid, home });
  }
  return entries;
}

/** group(5). */
export function parseGroup(text: string): GroupEntry[] {
  const entries: GroupEntry[] = [];
  for (const fields of records(text)) {
    const [name = "", , gidText = "", members = ""] = fields;
    const gid = parseId(gidText);
    if (fields.length < 3 || name === "" || gid === undefined) continue;
    entries.push({ name, gid, members: members.split(",").filter((member) => member !== "") });
  }
  return entries;
}

function* records(text: string): Generator<string[]> {
  for (const line of text.split("\n")) {
    const trimmed = line.trim();
    if (trimmed !== "" && !/^[#+-]/.test(trimmed)) yield trimmed.split(":");
  }
}

function parseId(text: string): number | undefined {
  if (!/^\d{1,10}$/.test(text)) return undefined;
  const id = Number(text);
  return id <= 0xffffffff ? id : undefined;
}
