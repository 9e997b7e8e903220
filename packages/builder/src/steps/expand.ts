// Variables in the arguments of steps: `$NAME`, `${NAME}`, `${NAME:-word}`, `${NAME-word}`, `${NAME:+word}` and `${NAME+word}`. Everything
// else is kept as it is: backslashes, quotes, new lines, and what a shell would run as a command.

/** The text has a substitution that is none of the above. */
export class BadSubstitution extends Error {
  override readonly name = "BadSubstitution";
}

type Part = string | Variable;

interface Variable {
  readonly name: string;
  readonly operator?: ":-" | "-" | ":+" | "+";
  readonly word: readonly Part[];
}

export type Lookup = (name: string) => string | undefined;

/** A variable that is not set is empty. Throws BadSubstitution. */
export function expandVariables(text: string, lookup: Lookup): string {
  return textOf(parse(text), lookup);
}

/** The names of all variables that the text may need. Throws BadSubstitution. */
export function variablesIn(text: string): ReadonlySet<string> {
  const names = new Set<string>();
  const collect = (parts: readonly Part[]) => {
    for (const part of parts) {
      if (typeof part === "string") continue;
      names.add(part.name);
      collect(part.word);
    }
  };
  collect(parse(text));
  return names;
}

function textOf(parts: readonly Part[], lookup: Lookup): string {
  return parts.map((part) => (typeof part === "string" ? part : oneValue(part, lookup))).join("");
}

function oneValue({ name, operator, word }: Variable, lookup: Lookup): string {
  const value = lookup(name);
  const isThere = operator?.startsWith(":") ? value !== undefined && value !== "" : value !== undefined;
  if (operator?.endsWith("+")) return isThere ? textOf(word, lookup) : "";
  if (operator?.endsWith("-") && !isThere) return textOf(word, lookup);
  return value ?? "";
}

function parse(text: string): readonly Part[] {
  const { parts, end } = parseUntil(text, 0, undefined);
  if (end !== text.length) throw new BadSubstitution(`bad substitution in ${text}`);
  return parts;
}

/** Reads up to the closing brace, or to the end of the text. */
function parseUntil(text: string, start: number, close: "}" | undefined): { parts: readonly Part[]; end: number } {
  const parts: Part[] = [];
  let at = start;
  let plainFrom = start;
  while (at < text.length && text[at] !== close) {
    const found = text[at] === "$" ? parseVariable(text, at) : undefined;
    if (!found) {
      at += 1;
      continue;
    }
    parts.push(text.slice(plainFrom, at), found.variable);
    at = found.end;
    plainFrom = at;
  }
  parts.push(text.slice(plainFrom, at));
  return { parts, end: at };
}

/** `at` is the place of a dollar sign. Undefined when no variable begins there. */
function parseVariable(text: string, at: number): { variable: Variable; end: number } | undefined {
  const braced = text[at + 1] === "{";
  const nameAt = at + (braced ? 2 : 1);
  const name = /^[A-Za-z_][A-Za-z0-9_]*/.exec(text.slice(nameAt, nameAt + 1_000))?.[0];
  if (!braced) return name === undefined ? undefined : { variable: { name, word: [] }, end: nameAt + name.length };
  if (name === undefined) throw new BadSubstitution(`bad substitution: ${text.slice(at, at + 40)}`);
  const after = nameAt + name.length;
  const operator = /^(:-|-|:\+|\+)/.exec(text.slice(after, after + 2))?.[0] as Variable["operator"];
  const wordAt = after + (operator?.length ?? 0);
  const { parts: word, end } = operator ? parseUntil(text, wordAt, "}") : { parts: [], end: wordAt };
  if (text[end] !== "}") throw new BadSubstitution(`bad substitution: ${text.slice(at, at + 40)}`);
  return { variable: { name, word, ...(operator && { operator }) }, end: end + 1 };
}
