import { splitWords } from "./words.ts";

/** A document that follows an instruction, as in `RUN <<EOF`. */
export interface Heredoc {
  /** The word of the instruction, such as `<<-"EOF"`. */
  readonly word: string;
  readonly name: string;
  /** Whether the tabs before each line are removed (`<<-`). */
  readonly removesTabs: boolean;
  /** Whether variables in it are expanded: the name has no quotes. */
  readonly expands: boolean;
  readonly content: string;
}

const HEREDOC = /^(\d*)<<(-?)([^<]+)$/;

/** A heredoc's word without its content, or undefined when the word is none. */
export function readHeredocWord(word: string): Heredoc | undefined {
  const match = HEREDOC.exec(word);
  const written = match?.[3];
  if (written === undefined) return undefined;
  const name = written.replace(/(['"])(.*?)\1|\\(.)/g, (_all, _quote, quoted, escaped) => quoted ?? escaped);
  if (name === "") return undefined;
  return { word, name, removesTabs: match?.[2] === "-", expands: name === written, content: "" };
}

/** The heredocs that the text after RUN, COPY or ADD announces, in the order of their contents. */
export function findHeredocs(text: string, escapeChar: string): readonly Heredoc[] {
  if (!text.includes("<<")) return [];
  return splitWords(text, escapeChar)
    .map(readHeredocWord)
    .filter((heredoc) => heredoc !== undefined);
}

/** The document as the instruction sees it. */
export function heredocText(heredoc: Heredoc): string {
  return heredoc.removesTabs ? heredoc.content.replace(/^\t+/gm, "") : heredoc.content;
}
