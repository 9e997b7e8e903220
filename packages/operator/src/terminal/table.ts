import { painter, printable } from "./text.ts";

/** Lines of columns that are as wide as their widest cell. The first row is the heading. */
export function formatTable(rows: readonly (readonly string[])[]): string {
  // A name can have line breaks, with which it could look like a row of its own.
  const cells = rows.map((row) => row.map((cell) => printable(cell).replaceAll(/[\t\n]/g, " ")));
  const widths = (cells[0] ?? []).map((_name, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)));
  const paint = painter(process.stdout);
  return cells
    .map((row, index) => {
      const line = row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd();
      return `${index === 0 ? paint("strong", line) : line}\n`;
    })
    .join("");
}
