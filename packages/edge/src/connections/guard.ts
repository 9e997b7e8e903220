/** Wraps an event listener: exceptions go to `onFault`. An uncaught exception in a listener would end the process. */
export function guard<A extends readonly unknown[]>(
  listener: (...args: A) => void,
  onFault: (error: unknown) => void,
): (...args: A) => void {
  return (...args) => {
    try {
      listener(...args);
    } catch (error) {
      onFault(error);
    }
  };
}
