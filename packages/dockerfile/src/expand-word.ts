// Docker's expansion of variables, quotes and escapes in the arguments of an instruction.

import { InstructionError } from "./dockerfile-error.ts";
import { matchingPrefixes, readPattern } from "./glob-match.ts";
import { MAX_MATCHED_LENGTH, MAX_PATTERN_LENGTH, MAX_VALUE_LENGTH } from "./limits.ts";
import { hasUnknown, LITERAL_DOLLAR, type Variables } from "./variables.ts";

export interface ExpandOptions {
  readonly escapeChar: string;
  /** Quotes are text, and only a `$` is escaped: the content of a heredoc. */
  readonly keepsQuotes?: boolean;
  /** What becomes of a variable that the Dockerfile does not set. By default it is left to the builder. */
  readonly onUnknown?: (name: string) => string;
}

/** Expands variables and removes quotes and escapes. The result has the marks of `Variables`. Throws InstructionError. */
export function expandWord(text: string, variables: Variables, options: ExpandOptions): string {
  const expanded = new WordReader(text, variables, options).readUntil("");
  variables.count(expanded.length);
  return expanded;
}

/** Nested defaults, as in `${a:-${b:-c}}`, deeper than anybody writes them. */
const MAX_DEPTH = 20;

class WordReader {
  private position = 0;
  private depth = 0;
  private readonly text: string;
  private readonly variables: Variables;
  private readonly options: ExpandOptions;

  constructor(text: string, variables: Variables, options: ExpandOptions) {
    this.text = text;
    this.variables = variables;
    this.options = options;
  }

  /** Reads up to the character, and past it; "" is the end of the text. */
  readUntil(end: string, keepsEscapes = false): string {
    const parts: string[] = [];
    let length = 0;
    for (;;) {
      const char = this.text.charAt(this.position);
      if (char === "") {
        if (end === "") return parts.join("");
        throw new InstructionError(`A "\${" has no closing "}". Add it, or write \\$ for a literal dollar.`);
      }
      this.position++;
      if (char === end) return parts.join("");
      const part = this.readPart(char, keepsEscapes);
      length += part.length;
      if (length > MAX_VALUE_LENGTH * 8)
        throw new InstructionError("The variables of this instruction expand to more text than a build takes.");
      parts.push(part);
    }
  }

  private readPart(char: string, keepsEscapes: boolean): string {
    if (char === "$") return this.readDollar();
    if (this.options.keepsQuotes === true) {
      if (char !== this.options.escapeChar || this.text.charAt(this.position) !== "$") return char;
      this.position++;
      return LITERAL_DOLLAR;
    }
    if (char === "'") return this.readSingleQuoted();
    if (char === '"') return this.readDoubleQuoted();
    if (char !== this.options.escapeChar) return char;
    const escaped = literal(this.text.charAt(this.position++));
    return keepsEscapes ? `\\${escaped}` : escaped;
  }

  private readSingleQuoted(): string {
    const end = this.text.indexOf("'", this.position);
    if (end === -1) throw new InstructionError("A single quote is never closed. Close it, or write \\' for a literal one.");
    const quoted = this.text.slice(this.position, end);
    this.position = end + 1;
    return quoted.replaceAll("$", LITERAL_DOLLAR);
  }

  private readDoubleQuoted(): string {
    const parts: string[] = [];
    for (;;) {
      const char = this.text.charAt(this.position++);
      if (char === "") throw new InstructionError('A double quote is never closed. Close it, or write \\" for a literal one.');
      if (char === '"') return parts.join("");
      if (char === "$") parts.push(this.readDollar());
      else if (char === this.options.escapeChar) {
        const escaped = this.text.charAt(this.position++);
        if (escaped === '"' || escaped === "$" || escaped === this.options.escapeChar) parts.push(literal(escaped));
        else parts.push(char, escaped);
      } else parts.push(char);
    }
  }

  /** Reads what follows a `$`. */
  private readDollar(): string {
    if (this.text.charAt(this.position) === "{") {
      this.position++;
      if (this.depth === MAX_DEPTH) throw new InstructionError(`Variables are nested more than ${MAX_DEPTH} deep.`);
      this.depth++;
      const value = this.readBraces();
      this.depth--;
      return value;
    }
    const name = this.readName();
    return name === "" ? LITERAL_DOLLAR : this.valueOf(name);
  }

  private readName(): string {
    const rest = this.text.slice(this.position, this.position + 1_000);
    const name = /^(?:[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*#?\-$!])/.exec(rest)?.[0] ?? "";
    this.position += name.length;
    return name;
  }

  private readBraces(): string {
    const name = this.readName();
    const operator = this.readOperator();
    if (name === "" || operator === undefined) {
      throw new InstructionError("This is no variable: ${ is followed by something else than a name. Write \\$ for a literal dollar.");
    }
    if (operator === "}") return this.valueOf(name);
    const isPattern = operator.startsWith("#") || operator.startsWith("%") || operator.startsWith("/");
    const word = this.readUntil(operator.startsWith("/") ? "/" : "}", isPattern);
    const { isKnown, value } = this.variables.lookUp(name);
    if (!isKnown && name === "PATH") {
      throw new InstructionError("The PATH of the image is not known when the Dockerfile is read. Write $PATH alone, without an operator.");
    }
    if (isPattern) return this.replaceMatch(operator, word, value ?? "");
    const isSet = operator.startsWith(":") ? value !== undefined && value !== "" : value !== undefined;
    switch (operator.at(-1)) {
      case "-":
        return isSet ? (value ?? "") : word;
      case "+":
        return isSet ? word : "";
      default:
        if (isSet) return value ?? "";
        throw new InstructionError(
          `The variable ${name} has no value: ${word === "" ? "it is required" : word}. Give it with --build-arg.`,
        );
    }
  }

  private readOperator(): string | undefined {
    const operator = /^(?:}|:?[-+?]|##?|%%?|\/\/?)/.exec(this.text.slice(this.position, this.position + 2))?.[0];
    this.position += operator?.length ?? 0;
    return operator;
  }

  private replaceMatch(operator: string, patternText: string, value: string): string {
    const replacement = operator.startsWith("/") ? this.readUntil("}") : "";
    if (hasUnknown(value) || hasUnknown(patternText)) {
      throw new InstructionError("A pattern needs a value that the Dockerfile itself sets, not one of the image.");
    }
    if (value.length > MAX_MATCHED_LENGTH || patternText.length > MAX_PATTERN_LENGTH) {
      throw new InstructionError(`A pattern takes values up to ${MAX_MATCHED_LENGTH} characters. Do this in a RUN.`);
    }
    const searches = operator.startsWith("/") ? value.length : 1;
    this.variables.countMatching(searches * value.length * patternText.length);
    if (operator.startsWith("#")) return cutPrefix(value, patternText, operator === "##");
    if (operator.startsWith("%")) return cutSuffix(value, patternText, operator === "%%");
    return replaceMatches(value, patternText, { replacement, all: operator === "//" });
  }

  private valueOf(name: string): string {
    const { isKnown, value } = this.variables.lookUp(name);
    if (isKnown) return value ?? "";
    if (!/^[A-Za-z_]/.test(name)) return "";
    return this.options.onUnknown === undefined ? `\${${name}}` : this.options.onUnknown(name);
  }
}

function literal(char: string): string {
  return char === "$" ? LITERAL_DOLLAR : char;
}

function cutPrefix(value: string, pattern: string, longest: boolean): string {
  const lengths = matchingPrefixes(readPattern(pattern), value);
  return value.slice((longest ? lengths.at(-1) : lengths[0]) ?? 0);
}

function cutSuffix(value: string, pattern: string, longest: boolean): string {
  // Single code units are matched, so reversing them is exact.
  const lengths = matchingPrefixes(readPattern(pattern).toReversed(), value.split("").reverse().join(""));
  return value.slice(0, value.length - ((longest ? lengths.at(-1) : lengths[0]) ?? 0));
}

function replaceMatches(value: string, pattern: string, options: { readonly replacement: string; readonly all: boolean }): string {
  const parsed = readPattern(pattern);
  const parts: string[] = [];
  for (let position = 0; position < value.length; ) {
    const length = matchingPrefixes(parsed, value.slice(position)).at(-1) ?? 0;
    if (length === 0) {
      parts.push(value.charAt(position++));
      continue;
    }
    parts.push(options.replacement);
    position += length;
    if (!options.all) return parts.join("") + value.slice(position);
  }
  return parts.join("");
}
