import { resolve } from "node:path";
import { type DockerfileRead, prepareSteps, readBuildArgs, readDockerfile } from "@skerry/setup/build-directory";
import { OperatorError } from "@skerry/setup/folder";
import type { OperatorContext } from "../context.ts";
import { BuildProgress } from "../templates/build-progress.ts";
import { type BuildEnd, type BuildIds, followBuild } from "../templates/follow-build.ts";
import { PlatformClient } from "../templates/platform-client.ts";
import { findRegistryLogin, type RegistryLogin } from "../templates/registry-login.ts";
import { uploadFiles } from "../templates/upload-files.ts";
import { formatDuration, painter, printable } from "../terminal/text.ts";

export interface BuildOptions {
  readonly dockerfile?: string;
  readonly cpuCount?: string;
  readonly memoryMb?: string;
  readonly tag: readonly string[];
  readonly startCmd?: string;
  readonly readyCmd?: string;
  readonly cache: boolean;
  readonly buildArg: readonly string[];
  readonly verbose?: boolean;
  readonly data?: string;
  /** File with credentials of registries. */
  readonly registryAuth?: string;
  /** The template to build on, instead of the image that the Dockerfile names. */
  readonly fromTemplate?: string;
}

type PreparedSteps = Awaited<ReturnType<typeof prepareSteps>>;

const out = process.stderr;

/** Builds a template from a Dockerfile, as a client of the platform's public API, and shows each step. Returns its id. */
export async function buildTemplate(
  context: OperatorContext,
  { name, directory, options }: { readonly name: string; readonly directory: string; readonly options: BuildOptions },
): Promise<string> {
  const startedAt = performance.now();
  const client = await PlatformClient.open(context, options.data);
  const read = await readDockerfile({
    directory,
    file: options.dockerfile,
    buildArgs: readBuildArgs(options.buildArg, context.env),
  });
  for (const { line, message } of read.build.notices) note("warn", `line ${line}: ${message}`);
  const login = options.fromTemplate === undefined ? await findLogin(read.build.fromImage, options, context.env) : undefined;
  const steps = await prepareSteps(read.build.steps, { directory: resolve(directory), dockerfile: read.path });
  const interrupt = interruptible();
  try {
    const ids = await request(client, { name, options, signal: interrupt.signal });
    await upload(client, { ids, steps, signal: interrupt.signal });
    await start(client, { ids, read, steps, options, login, signal: interrupt.signal });
    interrupt.detaches();
    const progress = new BuildProgress({ stream: out, isVerbose: options.verbose ?? false });
    const end = await followBuild(client, ids, { signal: interrupt.signal, onEntry: progress.add }).catch((error: unknown) => {
      progress.detach();
      throw error;
    });
    progress.end(end);
    if (end.status === "error") throw failure(end, { read, steps });
    showResult({ name, options, counts: progress.counts, milliseconds: performance.now() - startedAt });
    return ids.templateId;
  } finally {
    interrupt.end();
  }
}

function note(tone: "good" | "warn", text: string): void {
  out.write(`${painter(out)(tone, tone === "good" ? "✓" : "!")} ${printable(text)}\n`);
}

async function findLogin(image: string, { registryAuth }: BuildOptions, env: OperatorContext["env"]): Promise<RegistryLogin | undefined> {
  const login = await findRegistryLogin(image, { file: registryAuth, env });
  if (login) note("good", `pulls ${image} with the credentials of ${login.registry} in ${login.file}`);
  return login;
}

/** Ctrl-C ends this program at once, and says what becomes of the build. */
function interruptible(): { readonly signal: AbortSignal; detaches(): void; end(): void } {
  const controller = new AbortController();
  let isStarted = false;
  const stop = () =>
    controller.abort(
      isStarted
        ? new OperatorError("interrupted: the build goes on without you", {
            exit: "interrupted",
            hints: ["./skerry templates shows its state. A new build with the same tags takes its place, and goes on where this one is."],
          })
        : new OperatorError("interrupted: no build was started", { exit: "interrupted" }),
    );
  process.on("SIGINT", stop);
  return {
    signal: controller.signal,
    detaches: () => {
      isStarted = true;
    },
    end: () => process.off("SIGINT", stop),
  };
}

async function request(
  client: PlatformClient,
  { name, options, signal }: { name: string; options: BuildOptions; signal: AbortSignal },
): Promise<BuildIds> {
  const { templateID, buildID } = await client.call<{ templateID: string; buildID: string }>("POST", "/v3/templates", {
    signal,
    body: {
      name,
      ...(options.tag.length > 0 && { tags: options.tag }),
      ...(options.cpuCount !== undefined && { cpuCount: Number(options.cpuCount) }),
      ...(options.memoryMb !== undefined && { memoryMB: Number(options.memoryMb) }),
    },
  });
  return { templateId: templateID, buildId: buildID };
}

async function upload(
  client: PlatformClient,
  { ids, steps, signal }: { ids: BuildIds; steps: PreparedSteps; signal: AbortSignal },
): Promise<void> {
  const startedAt = performance.now();
  const { files, bytes, steps: count } = await uploadFiles(client, steps, { templateId: ids.templateId, signal });
  if (count === 0) return;
  const duration = formatDuration(performance.now() - startedAt);
  note(
    "good",
    `uploaded ${files} files (${(bytes / 1e6).toFixed(1)} MB) for ${count === 1 ? "one step" : `${count} steps`}  (${duration})`,
  );
}

async function start(
  client: PlatformClient,
  {
    ids,
    read,
    steps,
    options,
    login,
    signal,
  }: {
    ids: BuildIds;
    read: DockerfileRead;
    steps: PreparedSteps;
    options: BuildOptions;
    login: RegistryLogin | undefined;
    signal: AbortSignal;
  },
): Promise<void> {
  const startCmd = options.startCmd ?? read.build.startCommand;
  await client.call("POST", `/v2/templates/${ids.templateId}/builds/${ids.buildId}`, {
    signal,
    body: {
      ...(options.fromTemplate === undefined ? { fromImage: read.build.fromImage } : { fromTemplate: options.fromTemplate }),
      ...(login && { fromImageRegistry: { type: "registry", username: login.username, password: login.password } }),
      force: !options.cache,
      steps: steps.map(({ type, args, filesHash }) => ({ type, args, ...(filesHash !== undefined && { filesHash }) })),
      ...(startCmd !== "" && { startCmd }),
      ...(options.readyCmd !== undefined && { readyCmd: options.readyCmd }),
    },
  });
}

/** Says where in the Dockerfile the build failed. */
function failure(
  end: Extract<BuildEnd, { status: "error" }>,
  { read, steps }: { read: DockerfileRead; steps: PreparedSteps },
): OperatorError {
  const line = steps[Number(end.step) - 1]?.line;
  const places: Readonly<Record<string, string>> = { base: " at FROM", finalize: " after its last step" };
  const place = line === undefined ? (places[end.step] ?? "") : ` at line ${line} of ${read.path}`;
  return new OperatorError(`the build failed${place}: ${end.message}`, {
    hints: ["The steps before are cached: mend the Dockerfile and build again. --verbose shows everything that the steps print."],
  });
}

function showResult(result: {
  readonly name: string;
  readonly options: BuildOptions;
  readonly counts: { readonly steps: number; readonly cached: number };
  readonly milliseconds: number;
}): void {
  const { name, options, counts, milliseconds } = result;
  const [tag] = options.tag;
  const reference = name.includes(":") || tag === undefined ? name : `${name}:${tag}`;
  const text = JSON.stringify(reference);
  out.write(
    `\nThe template ${printable(reference)} is ready. It took ${formatDuration(milliseconds)}; ${counts.cached} of ${counts.steps} steps were cached.\n\n` +
      `  JavaScript  await Sandbox.create(${text})\n  Python      Sandbox.create(${text})\n\nTo connect a client: eval "$(./skerry env)"\n`,
  );
}
