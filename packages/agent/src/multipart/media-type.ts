// Header values of the form `type; name=value; name="quoted value"; name*=utf-8''encoded`.

export interface MediaType {
  readonly type: string;
  readonly parameters: ReadonlyMap<string, string>;
}

const PARAMETER = /^\s*;\s*([!#$%&'*+\-.^_`|~0-9A-Za-z]+)\s*=\s*/;
const TOKEN = /^[^\s;,"()<>@:\\/[\]?=]+/;
/** Characters that a backslash escapes. Before another character the backslash is part of the value (old Windows clients). */
const ESCAPABLE = new Set('()<>@,;:\\"/[]?=');

/** Undefined for a malformed header. Parameter names are lower-cased. The extended form of a parameter (`name*`) takes precedence. */
export function parseMediaType(header: string): MediaType | undefined {
  const semicolon = header.indexOf(";");
  const type = (semicolon === -1 ? header : header.slice(0, semicolon)).trim().toLowerCase();
  if (type === "") return undefined;
  const plain = new Map<string, string>();
  const extended = new Map<string, string>();
  let rest = semicolon === -1 ? "" : header.slice(semicolon);
  while (rest.trim() !== "" && rest.trim() !== ";") {
    const name = PARAMETER.exec(rest);
    if (!name) return undefined;
    const value = parseValue(rest.slice(name[0].length));
    if (!value) return undefined;
    rest = value.rest;
    const key = (name[1] ?? "").toLowerCase();
    if (!key.endsWith("*")) plain.set(key, value.text);
    else {
      const decoded = decodeExtended(value.text);
      if (decoded !== undefined) extended.set(key.slice(0, -1), decoded);
    }
  }
  return { type, parameters: new Map([...plain, ...extended]) };
}

function parseValue(text: string): { text: string; rest: string } | undefined {
  if (!text.startsWith('"')) {
    const token = TOKEN.exec(text)?.[0];
    return token === undefined ? undefined : { text: token, rest: text.slice(token.length) };
  }
  let value = "";
  for (let index = 1; index < text.length; index++) {
    const character = text[index] ?? "";
    if (character === '"') return { text: value, rest: text.slice(index + 1) };
    if (character === "\\" && ESCAPABLE.has(text[index + 1] ?? "")) {
      index += 1;
      value += text[index];
    } else value += character;
  }
  return undefined;
}

function decodeExtended(text: string): string | undefined {
  const match = /^(utf-8|us-ascii|iso-8859-1)'[^']*'(.*)$/i.exec(text);
  if (!match) return undefined;
  const bytes = Buffer.from(
    (match[2] ?? "").replace(/%([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
    "latin1",
  );
  return bytes.toString(match[1]?.toLowerCase() === "utf-8" ? "utf8" : "latin1");
}
