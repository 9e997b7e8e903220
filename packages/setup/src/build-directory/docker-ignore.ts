// .dockerignore with Docker's own meaning: a pattern that matches a directory excludes what is in it, `!` includes again, and the last
// pattern that matches decides.

interface IgnoreRule {
  readonly expression: RegExp;
  readonly includes: boolean;
}

export interface DockerIgnore {
  /** Whether a path is left out, relative to the build directory and without "./". */
  ignores(path: string): boolean;
  /** Whether something below a directory that is left out may be included again. */
  readonly hasExceptions: boolean;
}

export function parseDockerIgnore(text: string): DockerIgnore {
  const rules = text
    .replace(/^\uFEFF/, "")
    .split("\n")
    .filter((line) => !line.startsWith("#"))
    .map((line) => line.trim())
    .map(readRule)
    .filter((rule) => rule !== undefined);
  const hasExceptions = rules.some(({ includes }) => includes);
  return {
    hasExceptions,
    ignores: (path) => {
      const rule = rules.findLast(({ expression }) => expression.test(path));
      return rule !== undefined && !rule.includes;
    },
  };
}

function readRule(line: string): IgnoreRule | undefined {
  const includes = line.startsWith("!");
  const pattern = cleanPath(includes ? line.slice(1).trim() : line);
  if (pattern === "") return undefined;
  // What is below a match is matched too.
  return { expression: new RegExp(`^${globSource(pattern)}(?:/.*)?$`, "su"), includes };
}

/** Without `.`, `..` and empty parts, as Docker cleans a pattern. "" stands for the build directory itself, which cannot be left out. */
function cleanPath(path: string): string {
  const parts: string[] = [];
  for (const part of path.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== "" && part !== ".") parts.push(part);
  }
  return parts.join("/");
}

/** The source of an expression for a pattern of Docker: `*` and `?` stay in one directory, `**` is any number of them. */
export function globSource(pattern: string): string {
  let source = "";
  for (let position = 0; position < pattern.length; position++) {
    const char = pattern.charAt(position);
    if (char === "*" && pattern.charAt(position + 1) === "*") {
      while (pattern.charAt(position + 1) === "*") position++;
      if (pattern.charAt(position + 1) === "/") position++;
      source += position + 1 >= pattern.length ? ".*" : "(?:.*/)?";
    } else if (char === "*") source += "[^/]*";
    else if (char === "?") source += "[^/]";
    else if (char === "[") {
      const { text, end } = readClass(pattern, position);
      source += text;
      position = end;
    } else if (char === "\\" && position + 1 < pattern.length) source += escapeChar(codePoint(pattern, ++position));
    else source += escapeChar(codePoint(pattern, position));
    // Characters outside of the basic plane take two places.
    if ((pattern.codePointAt(position) ?? 0) > 0xffff) position++;
  }
  return source;
}

function codePoint(text: string, position: number): string {
  return String.fromCodePoint(text.codePointAt(position) ?? 0);
}

function escapeChar(char: string): string {
  return /[\\^$.*+?()[\]{}|/-]/.test(char) ? `\\${char}` : char;
}

/** `[a-z]` or `[^a-z]`. A bracket that is never closed stands for itself. */
function readClass(pattern: string, start: number): { readonly text: string; readonly end: number } {
  const match = /^\[(\^?)((?:\\.|[^\]\\])+)\]/su.exec(pattern.slice(start));
  const [whole, negation = "", content = ""] = match ?? [];
  if (whole === undefined) return { text: "\\[", end: start };
  const chars = content.replace(/\\(.)|([[\]^&~!#$%*+,.:;<=>?@`{|}(])/gsu, (_all, escaped, special) => `\\${escaped ?? special}`);
  const expression = `[${negation}${negation === "" ? "" : "/"}${chars}]`;
  return { text: isExpression(expression) ? expression : "(?!)", end: start + whole.length - 1 };
}

/** A range such as [z-a] matches nothing. */
function isExpression(source: string): boolean {
  try {
    return new RegExp(source, "u").source !== "";
  } catch {
    return false;
  }
}
