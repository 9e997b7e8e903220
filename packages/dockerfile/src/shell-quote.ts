/** A word that a shell reads as exactly this text. */
export function quoteWord(word: string): string {
  if (/^[A-Za-z0-9_@%+=:,./-]+$/.test(word)) return word;
  return `'${word.replaceAll("'", `'"'"'`)}'`;
}

/** A command line that runs a program with exactly these arguments. */
export function quoteWords(words: readonly string[]): string {
  return words.map(quoteWord).join(" ");
}
