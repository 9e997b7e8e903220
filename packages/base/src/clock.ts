/** Time as a dependency, so that deadlines can be tested without waiting. Milliseconds since the epoch. */
export interface Clock {
  now(): number;
}

export const systemClock: Clock = { now: () => Date.now() };
