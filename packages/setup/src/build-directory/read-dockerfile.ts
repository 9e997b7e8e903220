import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { type DockerfileBuild, DockerfileError, parseDockerfile } from "@skerry/dockerfile";
import { OperatorError } from "../operator-error.ts";

export interface DockerfileRead {
  readonly path: string;
  readonly build: DockerfileBuild;
}

/** Names that are looked for in the build directory, in this order. */
const DEFAULT_NAMES = ["Dockerfile", "e2b.Dockerfile"];

export async function readDockerfile(options: {
  readonly directory: string;
  readonly file: string | undefined;
  readonly buildArgs: Readonly<Record<string, string>>;
}): Promise<DockerfileRead> {
  const { directory, file, buildArgs } = options;
  const candidates = file === undefined ? DEFAULT_NAMES.map((name) => join(directory, name)) : [file];
  for (const path of candidates) {
    const text = await readIfThere(path);
    if (text !== undefined) return { path, build: parse(text, path, buildArgs) };
  }
  throw new OperatorError(`there is no ${candidates.join(" and no ")}`, {
    hints: ["Name the Dockerfile with --dockerfile, or the build directory after the name of the template."],
    exit: "usage",
  });
}

function parse(text: string, path: string, buildArgs: Readonly<Record<string, string>>): DockerfileBuild {
  try {
    return parseDockerfile(text, { buildArgs });
  } catch (error) {
    if (!(error instanceof DockerfileError)) throw error;
    const { problems } = error;
    const count = problems.length === 1 ? "a problem" : `${problems.length} problems`;
    throw new OperatorError(`${path} has ${count}; nothing was built`, {
      hints: problems.map(({ line, message }) => `line ${line}: ${message}`),
      exit: "usage",
    });
  }
}

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? "";
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw error;
  }
}

/** `NAME=VALUE`, or `NAME` for the value of that variable in the environment. */
export function readBuildArgs(given: readonly string[], env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const pairs = given.map((text) => {
    const equals = text.indexOf("=");
    const name = equals === -1 ? text : text.slice(0, equals);
    const value = equals === -1 ? env[name] : text.slice(equals + 1);
    if (name === "" || value === undefined) {
      throw new OperatorError(`--build-arg ${text} has no value`, {
        hints: ["Write --build-arg NAME=VALUE, or set the variable NAME."],
        exit: "usage",
      });
    }
    return [name, value] as const;
  });
  return Object.fromEntries(pairs);
}
