// The patterns of `${name#pattern}` and its like: `*`, `?`, and a backslash before a character that means itself.

/** A pattern as a list of what it matches: a character, "?" for any, "*" for any number. */
export type Pattern = readonly { readonly kind: "char" | "any" | "many"; readonly char: string }[];

export function readPattern(text: string): Pattern {
  const pattern: { kind: "char" | "any" | "many"; char: string }[] = [];
  for (let position = 0; position < text.length; position++) {
    const char = text.charAt(position);
    if (char === "\\" && position + 1 < text.length) pattern.push({ kind: "char", char: text.charAt(++position) });
    else if (char === "*") pattern.push({ kind: "many", char });
    else pattern.push({ kind: char === "?" ? "any" : "char", char });
  }
  return pattern;
}

/** The lengths of the prefixes of `text` that match, ascending. Takes the product of both lengths, however many `*` there are. */
export function matchingPrefixes(pattern: Pattern, text: string): readonly number[] {
  const lengths: number[] = [];
  let states = afterStars(pattern, new Set([0]));
  for (let length = 0; ; length++) {
    if (states.has(pattern.length)) lengths.push(length);
    if (length === text.length || states.size === 0) return lengths;
    const next = new Set<number>();
    for (const state of states) {
      const part = pattern[state];
      if (part?.kind === "many") next.add(state);
      else if (part?.kind === "any" || part?.char === text.charAt(length)) next.add(state + 1);
    }
    states = afterStars(pattern, next);
  }
}

function afterStars(pattern: Pattern, states: Set<number>): Set<number> {
  for (const state of states) if (pattern[state]?.kind === "many") states.add(state + 1);
  return states;
}
