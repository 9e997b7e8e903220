/** Diagnostics of the agent itself. A line on stderr is enough: the node stores it, and a logging library would add start time. */
export type Logger = (message: string, error?: unknown) => void;

export const stderrLogger: Logger = (message, error) => {
  const detail =
    error instanceof Error ? { error: error.message, stack: error.stack } : error === undefined ? {} : { error: String(error) };
  process.stderr.write(`${JSON.stringify({ component: "agent", message, ...detail })}\n`);
};
