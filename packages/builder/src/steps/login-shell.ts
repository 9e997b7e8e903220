// How commands of a build are run: `/bin/bash -l -c`, with the variables of the context.

/** The directories that every command finds programs in, whatever the context's PATH is. */
export const SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** The context's PATH again, for the shell: the login profiles of some distributions, such as Debian's, set PATH to a value of their own. */
const WANTED_PATH = "SKERRY_BUILD_PATH";

/** On one line with the command, so that its line numbers stay right. */
const RESTORE_PATH = `case ":$PATH:" in *":$${WANTED_PATH}:"*) ;; *) PATH="$${WANTED_PATH}:$PATH" ;; esac; unset ${WANTED_PATH}; `;

export interface ShellCommand {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** A command line in a login shell. `env` is that of the context. */
export function loginShell(command: string, env: Readonly<Record<string, string>>): ShellCommand {
  const { PATH: path } = env;
  if (path === undefined || path === SYSTEM_PATH) return { argv: ["/bin/bash", "-l", "-c", command], env };
  return {
    argv: ["/bin/bash", "-l", "-c", `${RESTORE_PATH}${command}`],
    env: { ...env, PATH: `${path}:${SYSTEM_PATH}`, [WANTED_PATH]: path },
  };
}
