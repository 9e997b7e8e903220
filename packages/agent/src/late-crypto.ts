/**
 * Node's cryptography, loaded when something needs it: its modules are among the largest, a megabyte in each sandbox, and most
 * sandboxes sign nothing.
 */
export function crypto(): typeof import("node:crypto") {
  return process.getBuiltinModule("node:crypto");
}
