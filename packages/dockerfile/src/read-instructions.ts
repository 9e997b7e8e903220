// Docker reads a Dockerfile line by line: directives, comments, lines that go on, heredocs. The rules here are those of BuildKit's own
// parser. dockerfile-ast was tried and differs from it: a line that ends with two backslashes goes on, quoted words are split at spaces.

import { type DockerfileProblem, InstructionError } from "./dockerfile-error.ts";
import { findHeredocs, type Heredoc } from "./heredoc.ts";
import { MAX_INSTRUCTIONS } from "./limits.ts";
import { endOfWord, readJsonForm, trimEndChars } from "./words.ts";

export interface InstructionFlag {
  readonly name: string;
  /** undefined for a flag without "=". */
  readonly value: string | undefined;
}

export interface Instruction {
  readonly line: number;
  /** In upper case. */
  readonly keyword: string;
  readonly flags: readonly InstructionFlag[];
  /** What follows the flags: one line, in which a continued line follows the one before without a space. */
  readonly text: string;
  readonly heredocs: readonly Heredoc[];
}

export interface InstructionList {
  readonly instructions: readonly Instruction[];
  readonly problems: readonly DockerfileProblem[];
  /** The escape character: a backslash, unless a directive says otherwise. */
  readonly escapeChar: string;
}

const HEREDOC_KEYWORDS = new Set(["RUN", "COPY", "ADD"]);

export function readInstructions(text: string): InstructionList {
  return new LineReader(text).read();
}

class LineReader {
  private readonly lines: readonly string[];
  private readonly instructions: Instruction[] = [];
  private readonly problems: DockerfileProblem[] = [];
  private escapeChar = "\\";
  /** The line that is read next, from 0. */
  private next = 0;

  constructor(text: string) {
    this.lines = text.replace(/^\uFEFF/, "").split("\n");
  }

  read(): InstructionList {
    this.readDirectives();
    while (this.next < this.lines.length && this.instructions.length < MAX_INSTRUCTIONS) {
      const line = this.next + 1;
      const logical = this.readLogicalLine();
      if (logical.trim() === "") continue;
      try {
        this.instructions.push(this.readInstruction(logical.trim(), line));
      } catch (error) {
        if (!(error instanceof InstructionError)) throw error;
        this.problems.push({ line, message: error.message });
      }
    }
    if (this.instructions.length === MAX_INSTRUCTIONS && this.next < this.lines.length) {
      this.problems.push({ line: this.next + 1, message: `A Dockerfile can have ${MAX_INSTRUCTIONS} instructions at most.` });
    }
    return { instructions: this.instructions, problems: this.problems, escapeChar: this.escapeChar };
  }

  /** Directives are comments of the form `# name=value` before everything else. An unknown one is a comment, and ends them. */
  private readDirectives(): void {
    const seen = new Set<string>();
    while (this.next < this.lines.length) {
      const match = /^\s*#\s*([A-Za-z][A-Za-z0-9]*)\s*=\s*(\S.*)$/.exec(this.line(this.next));
      const name = match?.[1]?.toLowerCase() ?? "";
      const value = match?.[2]?.trim() ?? "";
      if (!["syntax", "escape", "check"].includes(name)) return;
      this.next++;
      if (seen.has(name)) this.problems.push({ line: this.next, message: `The directive "${name}" is given twice. Remove one.` });
      seen.add(name);
      if (name !== "escape") continue;
      if (value === "\\" || value === "`") this.escapeChar = value;
      else this.problems.push({ line: this.next, message: `The escape directive takes a backslash or a backtick, not "${value}".` });
    }
  }

  private line(index: number): string {
    return trimEndChars(this.lines[index] ?? "", "\r");
  }

  /** The next line with the lines that continue it, "" for a comment or an empty line. Comments and empty lines in between are left out. */
  private readLogicalLine(): string {
    const first = this.line(this.next++).trimStart();
    if (first.startsWith("#")) return "";
    const parts: string[] = [];
    let part = this.cutContinuation(first);
    parts.push(part.text);
    while (part.goesOn && this.next < this.lines.length) {
      const line = this.line(this.next++);
      if (line.trimStart().startsWith("#") || line.trim() === "") continue;
      part = this.cutContinuation(line);
      parts.push(part.text);
    }
    return parts.join("");
  }

  /** A line goes on when it ends with one escape character, spaces after it aside. Two are the character itself. */
  private cutContinuation(line: string): { readonly text: string; readonly goesOn: boolean } {
    const trimmed = trimEndChars(line, " \t");
    if (!trimmed.endsWith(this.escapeChar) || trimmed.at(-2) === this.escapeChar) return { text: line, goesOn: false };
    return { text: trimmed.slice(0, -1), goesOn: true };
  }

  private readInstruction(logical: string, line: number): Instruction {
    const end = logical.search(/[\t\v\f\r ]/);
    const keyword = (end === -1 ? logical : logical.slice(0, end)).toUpperCase();
    const rest = end === -1 ? "" : logical.slice(end).trim();
    const { flags, text } = readFlags(rest, this.escapeChar);
    const heredocs = this.readHeredocs(keyword, text);
    return { line, keyword, flags, text, heredocs };
  }

  private readHeredocs(keyword: string, text: string): readonly Heredoc[] {
    if (keyword === "ONBUILD") {
      const [, inner = "", rest = ""] = /^(\S+)\s+(.*)$/.exec(text) ?? [];
      return inner.toUpperCase() === "ONBUILD" ? [] : this.readHeredocs(inner.toUpperCase(), rest);
    }
    if (!HEREDOC_KEYWORDS.has(keyword) || readJsonForm(text) !== undefined) return [];
    return findHeredocs(text, this.escapeChar).map((heredoc) => this.readHeredocContent(heredoc));
  }

  private readHeredocContent(heredoc: Heredoc): Heredoc {
    const content: string[] = [];
    while (this.next < this.lines.length) {
      const raw = this.lines[this.next] ?? "";
      const line = this.line(this.next++);
      if ((heredoc.removesTabs ? line.replace(/^\t+/, "") : line) === heredoc.name) return { ...heredoc, content: content.join("") };
      content.push(`${raw}\n`);
    }
    throw new InstructionError(`The heredoc ${heredoc.word} never ends. Add a line that says only: ${heredoc.name}`);
  }
}

/** Cuts the words that begin with `--` off the front. Their quotes are removed. */
function readFlags(rest: string, escapeChar: string): { readonly flags: readonly InstructionFlag[]; readonly text: string } {
  const flags: InstructionFlag[] = [];
  let text = rest;
  while (text.startsWith("--")) {
    const end = endOfWord(text, 0, escapeChar);
    const word = text.slice(2, end).replaceAll(/["']/g, "");
    text = text.slice(end).trimStart();
    if (word === "") break;
    const equals = word.indexOf("=");
    flags.push(equals === -1 ? { name: word, value: undefined } : { name: word.slice(0, equals), value: word.slice(equals + 1) });
  }
  return { flags, text };
}
