/** Settles like the promise, or rejects as soon as the signal is aborted. The work behind the promise continues. */
export function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(new Error("the caller went away"));
    const settled = () => signal.removeEventListener("abort", onAbort);
    promise.finally(settled).then(resolve, reject);
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
  });
}
