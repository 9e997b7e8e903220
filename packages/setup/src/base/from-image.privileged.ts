import { copyFile, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { asError, Secret, SubprocessError } from "@skerry/base";
import { describeOciImage, type OciImageReference, pullOciImage, resolveOciImage, unpackOciImage } from "@skerry/layers";
import type { Report } from "../steps.ts";
import { toolEnvironment } from "../tool-environment.ts";
import { aptTransportOptions } from "./apt-options.ts";
import { type Distribution, findDistribution, parseOsRelease } from "./distribution.ts";
import { BASE_PACKAGES, LEFT_OUT } from "./recipe.ts";
import { SETUP_PATH, type Tree } from "./tree.privileged.ts";

export interface ImageOrigin {
  readonly from: "image";
  readonly reference: string;
  readonly digest: string;
}

/** Tools that the recipe needs. An image may lack them; a template from the archive always has them. */
const TOOLS = ["findutils", "passwd", "tar"];
const INSTALL_TIMEOUT_MS = 900_000;

/** Fills `target` with an OCI image and installs the recipe's packages in it. */
export async function fillFromImage(options: {
  readonly image: OciImageReference;
  readonly target: string;
  readonly tree: Tree;
  readonly setupDir: string;
  readonly report: Report;
  readonly signal: AbortSignal;
}): Promise<{ readonly origin: ImageOrigin; readonly distribution: Distribution }> {
  const { image, target, tree, setupDir, report, signal } = options;
  const dir = join(setupDir, "pull");
  await mkdir(dir, { mode: 0o700 });
  report("pulling the image");
  const access = { dir, registries: { hostCredentials: true, env: new Secret(toolEnvironment()) }, signal };
  const pulled = await pullOciImage(await describeOciImage(await resolveOciImage(image, access), access), access);
  report("unpacking the image");
  await unpackOciImage(pulled, { target, signal });
  const distribution = await distributionOf(tree, pulled.reference);
  report("installing the template's packages");
  await installPackages({ tree, setupDir, distribution });
  return { origin: { from: "image", reference: pulled.reference, digest: pulled.digest }, distribution };
}

async function distributionOf(tree: Tree, reference: string): Promise<Distribution> {
  const foreign = (name: string) => new Error(`image ${reference} has ${name} in it: the base template needs Debian or Ubuntu`);
  const text = await tree.run("/bin/cat", ["/etc/os-release"]).then(
    ({ stdout }) => stdout,
    () => "",
  );
  const release = parseOsRelease(text);
  const distribution = await findDistribution(release);
  if (!distribution) throw foreign(release.PRETTY_NAME ?? release.ID ?? "nothing known");
  return distribution;
}

async function installPackages(options: { tree: Tree; setupDir: string; distribution: Distribution }): Promise<void> {
  const { tree, setupDir, distribution } = options;
  // Paths of the host's keys do not exist in the image, so the image's own keys are used.
  const sources = distribution.buildSources.map((line) => line.replace(/\[[^\]]*\] /, ""));
  await writeFile(join(setupDir, "sources.list"), `${sources.join("\n")}\n`);
  await writeFile(join(setupDir, "apt.conf"), await aptConfiguration(setupDir, sources), { mode: 0o600 });
  for (const name of ["resolv.conf", "hosts"]) await copyFile(join("/etc", name), join(setupDir, name));
  // Replaces links that an image may have at these paths. The recipe replaces both files at the end.
  for (const name of ["resolv.conf", "hosts"]) {
    await tree.run("/usr/bin/install", ["-m", "644", `${SETUP_PATH}/${name}`, `/etc/${name}`]);
  }
  const aptGet = async (args: readonly string[]) => {
    try {
      await tree.run("/usr/bin/env", [`APT_CONFIG=${SETUP_PATH}/apt.conf`, "/usr/bin/apt-get", "-q", "-y", ...args], {
        timeoutMs: INSTALL_TIMEOUT_MS,
      });
    } catch (cause) {
      const said = cause instanceof SubprocessError ? lastErrors(cause.stderr) : asError(cause).message;
      throw new Error(`apt-get ${args[0]} failed in the image: ${said}`, { cause });
    }
  };
  await aptGet(["update"]);
  // The packages of an image are as old as its last build.
  await aptGet(["dist-upgrade"]);
  await aptGet(["install", ...TOOLS, ...Object.keys(BASE_PACKAGES)]);
}

async function aptConfiguration(setupDir: string, sources: readonly string[]): Promise<string> {
  const transport = await aptTransportOptions();
  const lines = [
    `Dir::Etc::SourceList "${SETUP_PATH}/sources.list";`,
    'Dir::Etc::SourceParts "-";',
    'APT::Install-Recommends "false";',
    'Acquire::Retries "3";',
    ...transport,
    ...LEFT_OUT.map((pattern) => `DPkg::Options:: "--path-exclude=${pattern}";`),
  ];
  if (sources.some((line) => /^deb https:/.test(line))) {
    // A slim image has no certificate authorities yet, and the archive may need one of the host's own.
    const setting = /^Acquire::https::CAInfo "([^"]+)";$/i;
    const file =
      transport.map((line) => setting.exec(line)?.[1]).find((path) => path !== undefined) ?? "/etc/ssl/certs/ca-certificates.crt";
    await copyFile(file, join(setupDir, "authorities.crt"));
    lines.push(`Acquire::https::CAInfo "${SETUP_PATH}/authorities.crt";`);
  }
  return `${lines.join("\n")}\n`;
}

const lastErrors = (stderr: string): string =>
  stderr
    .split("\n")
    .filter((line) => line.startsWith("E: "))
    .slice(-2)
    .join(" ") || stderr.trim().slice(-300);
