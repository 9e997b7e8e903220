/** What one step leaves to the next one besides files. */
export interface StepContext {
  readonly user: string;
  /** "": the home directory of the user. */
  readonly workdir: string;
  readonly env: Readonly<Record<string, string>>;
}
