import { InstructionError } from "./dockerfile-error.ts";
import { MAX_COMPARISONS, MAX_EXPANDED_LENGTH, MAX_VALUE_LENGTH } from "./limits.ts";

/** Stands for a `$` that is meant literally, until the value is handed out. A Dockerfile cannot contain this character. */
export const LITERAL_DOLLAR = "\0";

/**
 * The variables at one place of a Dockerfile. Their values are known but for those of the base image: a reference to one that the Dockerfile
 * does not set stays `${NAME}` in the result, and the builder expands it when it knows the image.
 */
export class Variables {
  private readonly env = new Map<string, string>();
  private readonly args = new Map<string, string | undefined>();
  private expandedLength = 0;
  private comparisons = 0;

  setEnv(name: string, value: string): void {
    this.env.set(name, this.checked(name, value));
  }

  /** An ARG without a value is known to be unset. */
  setArg(name: string, value: string | undefined): void {
    this.args.set(name, value === undefined ? undefined : this.checked(name, value));
  }

  isEnv(name: string): boolean {
    return this.env.has(name);
  }

  /** ENV wins over ARG, whatever the order is. */
  lookUp(name: string): { readonly isKnown: boolean; readonly value: string | undefined } {
    const isKnown = this.env.has(name) || this.args.has(name);
    return { isKnown, value: this.env.get(name) ?? this.args.get(name) };
  }

  /** Adds to the characters that all expansions of the Dockerfile have made. */
  count(length: number): void {
    this.expandedLength += length;
    if (this.expandedLength > MAX_EXPANDED_LENGTH) {
      throw new InstructionError(`The variables of the Dockerfile expand to more than ${MAX_EXPANDED_LENGTH} characters. Shorten them.`);
    }
  }

  /** Adds to the comparisons that the patterns of the Dockerfile have taken. */
  countMatching(comparisons: number): void {
    this.comparisons += comparisons;
    if (this.comparisons > MAX_COMPARISONS) throw new InstructionError("The patterns of the Dockerfile take too long. Do this in a RUN.");
  }

  private checked(name: string, value: string): string {
    if (value.length <= MAX_VALUE_LENGTH) return value;
    throw new InstructionError(`The value of ${name.slice(0, 100)} has more than ${MAX_VALUE_LENGTH} characters. Put it into a file.`);
  }
}

/** The text with its literal dollars, for something that expands no variables. */
export function plainText(expanded: string): string {
  return expanded.replaceAll(LITERAL_DOLLAR, "$");
}

/** Whether the text refers to a variable that the Dockerfile does not set. */
export function hasUnknown(expanded: string): boolean {
  return expanded.includes("${");
}

/** The default of a variable that nobody sets: the only way to write a `$` that the builder does not take for a variable. */
// biome-ignore lint/suspicious/noTemplateCurlyInString: the builder expands it.
const KEPT_DOLLAR = "${LITERAL_DOLLAR:-$}";

/** The text as an argument of a step whose variables the builder expands. */
export function stepText(expanded: string): string {
  return plainText(expanded.replace(/\0(?=[A-Za-z_{])/g, () => KEPT_DOLLAR));
}

/** The text as a double-quoted word of a shell that knows the variables of the base image. */
export function shellText(expanded: string): string {
  return `"${expanded.replace(/[\\"`]/g, "\\$&").replaceAll(LITERAL_DOLLAR, "\\$")}"`;
}
