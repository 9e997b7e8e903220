/** An exception that leaves an event listener ends the process: `onFault` gets it instead. */
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
