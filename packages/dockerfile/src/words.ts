// How Docker splits the text after an instruction into words. The words keep their quotes and escapes, which `expandWord` removes.

const SPACE = /[\t\v\f\r ]/;

/** Splits at whitespace that is neither quoted nor escaped. */
export function splitWords(text: string, escapeChar: string): readonly string[] {
  const words: string[] = [];
  let position = 0;
  while (position < text.length) {
    if (SPACE.test(text.charAt(position))) {
      position++;
      continue;
    }
    const end = endOfWord(text, position, escapeChar);
    words.push(text.slice(position, end));
    position = end;
  }
  return words;
}

/** Where the word that begins at `start` ends. A quote that is never closed reaches to the end of the text. */
export function endOfWord(text: string, start: number, escapeChar: string): number {
  let quote = "";
  for (let position = start; position < text.length; position++) {
    const char = text.charAt(position);
    if (char === escapeChar && quote !== "'") position++;
    else if (quote !== "") {
      if (char === quote) quote = "";
    } else if (char === '"' || char === "'") quote = char;
    else if (SPACE.test(char)) return position;
  }
  return text.length;
}

/** Splits at every whitespace, as Docker does for the paths of COPY, which have no quotes. */
export function splitAtSpaces(text: string): readonly string[] {
  return text.split(/[\t\v\f\r ]+/).filter((word) => word !== "");
}

/** The strings of a JSON array, or undefined when the text is not the JSON form of an instruction. */
export function readJsonForm(text: string): readonly string[] | undefined {
  if (!text.startsWith("[")) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!Array.isArray(value) || !value.every((entry) => typeof entry === "string")) return undefined;
  return value;
}

/** The text without these characters at its end. A regular expression would try each of a long row of spaces as its start. */
export function trimEndChars(text: string, chars: string): string {
  let end = text.length;
  while (end > 0 && chars.includes(text.charAt(end - 1))) end--;
  return text.slice(0, end);
}
