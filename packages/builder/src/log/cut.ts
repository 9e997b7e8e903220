/** A text for people, which a caller may have made very long. */
export function cut(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length)} … (${text.length - length} more)`;
}
