/** Tells the user what a step is doing right now. */
export type Report = (doing: string) => void;

/** Shows the steps of a set-up. The command line has an implementation for terminals. */
export interface Steps {
  /** Runs one step. `describe` returns the text that is shown beside its name. */
  run<T>(name: string, work: (report: Report) => Promise<T>, describe: (result: T) => string): Promise<T>;
  note(text: string): void;
  warn(text: string): void;
}

/** Shows nothing. For tests, where the message of a failure is enough. */
export const silentSteps: Steps = {
  run: (_name, work) => work(() => {}),
  note: () => {},
  warn: () => {},
};
