/** Frames that a connection may send at once after a quiet time, and then in each second. Clients ping a few times a minute. */
const BURST = 100;
const PER_SECOND = 10;

/** Counts the PING and SETTINGS frames of one connection. Each causes an answer, and none is part of a request. */
export class ControlFrames {
  readonly #now: () => number;
  #tokens = BURST;
  #at: number;

  /** `now` is a monotonic clock in milliseconds. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
    this.#at = now();
  }

  /** Returns false if the connection has sent too many. */
  take(): boolean {
    const at = this.#now();
    this.#tokens = Math.min(BURST, this.#tokens + ((at - this.#at) / 1000) * PER_SECOND);
    this.#at = at;
    if (this.#tokens < 1) return false;
    this.#tokens -= 1;
    return true;
  }
}
