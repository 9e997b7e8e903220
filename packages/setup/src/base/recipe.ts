import { createHash } from "node:crypto";
import { RESEED_FILES, RESEED_PROFILE, RESEED_PYTHON } from "./reseed.ts";

/** Increment it when the steps in build-base.ts change in a way that the data below does not show. */
const REVISION = 1;

/** Debian packages of the base template, with what users need them for. */
export const BASE_PACKAGES: Readonly<Record<string, string>> = {
  bash: "the shell that commands run in",
  "ca-certificates": "TLS",
  coreutils: "the everyday commands",
  curl: "downloads",
  git: "repositories",
  iproute2: "ss: which ports are open",
  "ncurses-bin": "tput and terminal descriptions",
  netbase: "names of ports and protocols",
  procps: "ps, top, kill",
  python3: "Python",
  "python3-pip": "pip",
  "python3-venv": "virtual environments",
  "python-is-python3": "`python` is Python 3",
  sudo: "root without a password",
  tzdata: "time zones",
  "util-linux": "findmnt, setsid and friends",
};

/** Paths that are left out: not needed in a sandbox, and a third of the size. */
export const LEFT_OUT = ["/usr/share/man/*", "/usr/share/info/*", "/usr/share/doc/*", "/usr/share/locale/*", "/usr/share/lintian/*"];

/**
 * The login profile. Every command of a client runs through `bash -l`. Debian's profile starts `id` and other processes each time; this
 * one starts none.
 */
export const PROFILE = `# System-wide login profile. Nothing here may start a process: every command runs through it.
if [ "\${EUID:-1000}" = 0 ]; then
  PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
else
  PATH=/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin
fi
export PATH
if [ -n "\${PS1-}" ] && [ -n "\${BASH-}" ] && [ "$BASH" != /bin/sh ]; then
  [ -f /etc/bash.bashrc ] && . /etc/bash.bashrc
fi
for profile in /etc/profile.d/*.sh; do
  [ -r "$profile" ] && . "$profile"
done
unset profile
${RESEED_PROFILE}`;

export const ROOT_PROFILE = `[ -n "\${BASH-}" ] && [ -f ~/.bashrc ] && . ~/.bashrc
`;

/** Keeps NODE_OPTIONS, so that programs under sudo are reseeded as well (reseed.ts). */
export const SUDOERS = `Defaults env_keep += "NODE_OPTIONS"
user ALL=(ALL:ALL) NOPASSWD: ALL
`;

/** Identifies the template that build-base.ts would build now. */
export function recipeHash(inputs: {
  distribution: string;
  arch: string;
  nodeVersion: string;
  npmVersion: string;
  koffiDigest: string;
}): string {
  return createHash("sha256")
    .update(JSON.stringify([REVISION, BASE_PACKAGES, LEFT_OUT, PROFILE, ROOT_PROFILE, SUDOERS, RESEED_FILES, RESEED_PYTHON, inputs]))
    .digest("hex");
}
