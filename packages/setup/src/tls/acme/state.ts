import { readJsonFile, writeJsonFile } from "../../folder/json-file.ts";

/** The record of one challenge, as the hook gets it. */
export interface ChallengeRecord {
  readonly name: string;
  readonly value: string;
}

/** What the next process must know. */
export interface AcmeState {
  /** Authority and names of the certificate. */
  readonly certificateOf?: string;
  /** Records that may exist: written before the hook sets them. */
  readonly records?: readonly ChallengeRecord[];
  /** Failed attempts in a row. */
  readonly failures?: number;
  /** Time of the last attempt, in milliseconds. */
  readonly attemptAt?: number;
  readonly error?: string;
}

/** A damaged file only costs an order. */
export async function readAcmeState(path: string): Promise<AcmeState> {
  return (await readJsonFile<AcmeState>(path).catch(() => undefined)) ?? {};
}

export async function changeAcmeState(path: string, change: AcmeState): Promise<void> {
  await writeJsonFile(path, { ...(await readAcmeState(path)), ...change }, 0o600);
}
