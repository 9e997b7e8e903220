/** The first SDK version whose builds run their steps as the user `user`. */
const DEFAULT_USER_SINCE = [2, 3, 0] as const;

/** Whether a request comes from an SDK before 2.3.0. Any other client counts as current. */
export function isBeforeDefaultUser(userAgent: string | undefined): boolean {
  const match = /(?:^|\s)e2b-(?:js|python)-sdk\/(\d{1,6})\.(\d{1,6})(?:\.(\d{1,6}))?/.exec(userAgent ?? "");
  if (!match) return false;
  const version = match.slice(1, 4).map((part) => Number(part ?? 0));
  const difference = DEFAULT_USER_SINCE.map((part, index) => (version[index] ?? 0) - part).find((each) => each !== 0);
  return (difference ?? 0) < 0;
}
