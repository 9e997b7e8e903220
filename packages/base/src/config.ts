import { PlatformError } from "./error.ts";
import { Secret } from "./secret.ts";

/**
 * Reads settings strictly. An invalid value is an error and never becomes the default. A variable with the prefix that is not a setting
 * is an error as well, because it is nearly always a misspelling. All problems are reported at once.
 */
export class ConfigReader {
  readonly #env: Readonly<Record<string, string | undefined>>;
  readonly #prefix: string;
  readonly #seen = new Set<string>();
  readonly #problems: string[] = [];

  constructor(env: Readonly<Record<string, string | undefined>>, prefix: string) {
    this.#env = env;
    this.#prefix = prefix;
  }

  string(name: string, fallback: string): string {
    return this.#read(name) ?? fallback;
  }

  optional(name: string): string | undefined {
    return this.#read(name);
  }

  secret(name: string): Secret | undefined {
    const value = this.#read(name);
    return value === undefined ? undefined : new Secret(value);
  }

  integer(name: string, fallback: number, range: { min: number; max: number }): number {
    const text = this.#read(name);
    if (text === undefined) return fallback;
    const value = /^-?\d+$/.test(text) ? Number(text) : Number.NaN;
    if (!Number.isSafeInteger(value) || value < range.min || value > range.max) {
      this.#problems.push(`${this.#prefix}${name} must be a whole number from ${range.min} to ${range.max}, not "${text}"`);
      return fallback;
    }
    return value;
  }

  choice<const T extends string>(name: string, fallback: NoInfer<T>, choices: readonly T[]): T {
    const text = this.#read(name);
    if (text === undefined) return fallback;
    const found = choices.find((choice) => choice === text);
    if (found === undefined) {
      this.#problems.push(`${this.#prefix}${name} must be one of ${choices.join(", ")}, not "${text}"`);
      return fallback;
    }
    return found;
  }

  list(name: string, fallback: readonly string[]): readonly string[] {
    const text = this.#read(name);
    if (text === undefined) return fallback;
    return text
      .split(",")
      .map((part) => part.trim())
      .filter((part) => part !== "");
  }

  problem(message: string): void {
    this.#problems.push(message);
  }

  /** Call once, after all settings were read. Throws one PlatformError("config_invalid") that names every problem. */
  finish(): void {
    for (const name of Object.keys(this.#env)) {
      if (name.startsWith(this.#prefix) && !this.#seen.has(name)) {
        this.#problems.push(`${name} is not a setting (see docs/config.md)`);
      }
    }
    if (this.#problems.length > 0) {
      throw new PlatformError("config_invalid", `the configuration is not valid:\n  ${this.#problems.join("\n  ")}`);
    }
  }

  #read(name: string): string | undefined {
    const full = this.#prefix + name;
    this.#seen.add(full);
    const value = this.#env[full];
    return value === undefined || value === "" ? undefined : value;
  }
}
