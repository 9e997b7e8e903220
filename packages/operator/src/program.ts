import { DEFAULT_DATA_DIR, EXIT_CODES } from "@skerry/setup/folder";
import { Command, CommanderError, InvalidArgumentError, Option } from "commander";
import { addAccountCommands } from "./account-commands.ts";
import type { OperatorContext } from "./context.ts";
import { reportFailure } from "./report-failure.ts";

/** Runs one ./skerry command line and returns its exit code. Each command loads its own modules, so that `env` starts fast. */
export async function runOperator(context: OperatorContext, args: readonly string[]): Promise<number> {
  const program = createProgram(context);
  try {
    await program.parseAsync(args, { from: "user" });
    return Number(process.exitCode ?? EXIT_CODES.ok.code);
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT_CODES.ok.code : EXIT_CODES.usage.code;
    return reportFailure(error);
  }
}

function createProgram(context: OperatorContext): Command {
  const program = new Command("skerry")
    // A command's own --data is not one of its parent.
    .enablePositionalOptions()
    .description("Runs sandboxes for untrusted code on this host, compatible with E2B's API and isolated by gVisor.")
    .version(context.version)
    .exitOverride()
    // Options after the name of a command belong to that command. `templates` and its commands share some.
    .enablePositionalOptions()
    .showHelpAfterError("(run ./skerry --help for the list of commands)")
    .addHelpText("after", helpFooter);
  addPlatformCommands(program, context);
  addServiceCommands(program, context);
  addRepairCommands(program, context);
  addTemplateCommands(program, context);
  addAccountCommands(program, context);
  addInsightCommands(program, context);
  addDeveloperCommands(program, context);
  addSoakCommands(program, context);
  return program;
}

function dataOption(): Option {
  return new Option("--data <dir>", `data folder (default: SKERRY_DATA, or ${DEFAULT_DATA_DIR})`);
}

/** The data folder stores these settings, so the defaults apply to its first start only. */
function withSettings(command: Command): Command {
  return command
    .option("--runtime <name>", "gvisor or runc (first start: gvisor)")
    .option("--listen <address>", "address to listen on (first start: 127.0.0.1)")
    .option("--api-port <port>", "port of the API (first start: 4680)")
    .option("--edge-port <port>", "port of the edge, the proxy for sandbox traffic (first start: 4681)")
    .option("--domain <name>", "domain of sandbox host names (first start: localhost:<edge port>, with TLS skerry.localhost:<TLS port>)")
    .option("--tls", "also serve TLS, with a certificate of an own authority that clients must trust (see docs/tls.md)")
    .option("--no-tls", "serve no TLS any more")
    .option("--tls-port <port>", "port of the TLS listener (first start: 4443)")
    .option("--tls-cert <file>", "serve TLS with this certificate (PEM) instead")
    .option("--tls-key <file>", "key of the certificate (default: in the certificate's file)")
    .option(
      "--acme <directory>",
      "serve TLS with a certificate that is obtained and renewed with ACME: letsencrypt, letsencrypt-staging or a URL",
    )
    .option("--acme-contact <address>", "e-mail address to which the authority writes")
    .option("--acme-hook <program>", "program that sets the DNS records of challenges (see docs/tls.md)")
    .option("--acme-agree", "agree to the terms of service of the authority");
}

function addPlatformCommands(program: Command, context: OperatorContext): void {
  const up = program
    .command("up")
    .summary("set up this host, start the platform and run a first sandbox")
    .description(
      "Installs what is missing, starts the platform, runs a first sandbox and prints how to connect.\n\nIn the foreground it shows the log and restarts the platform after a crash. Ctrl-C stops the platform and kills every sandbox.",
    )
    .option("-d, --detach", "run the platform in the background");
  withSettings(up)
    .addOption(dataOption())
    .action(async (options) => (await import("./commands/up.ts")).up(context, options));
  const restart = program
    .command("restart")
    .summary("restart the platform after an update or with other settings; sandboxes keep running")
    .description(
      "Installs what is missing, replaces the platform's process with one of this checkout and runs a first sandbox. Sandboxes keep running, but connections are interrupted for one or two seconds.\n\nOptions that are not given keep their values. SKERRY_ variables are read again.",
    );
  withSettings(restart)
    .addOption(dataOption())
    .action(async (options) => (await import("./commands/restart.ts")).restart(context, options));
  program
    .command("down")
    .summary("stop the platform, kill every sandbox and clean up this host")
    .description(
      "Stops the platform, kills every sandbox and removes their processes, namespaces, network interfaces, firewall tables, mounts and cgroups.\n\nKeeps the data folder, including paused sandboxes and snapshots, unless --purge is given.",
    )
    .option("--purge", "also delete the data folder, and volumes elsewhere")
    .addOption(dataOption())
    .action(async (options) => (await import("./commands/down.ts")).down(context, options));
}

function addServiceCommands(program: Command, context: OperatorContext): void {
  const nameOption = () => new Option("--name <name>", "name of the service (default: skerry, or skerry- and the data folder's name)");
  const install = program
    .command("install")
    .summary("set up this host, and a systemd service that starts the platform at boot")
    .description(
      "Installs what is missing, and a systemd service that starts the platform now and at every boot.\n\nWhen the host shuts down or restarts, running sandboxes are paused with their memory, and run again after the boot. SKERRY_ variables are kept for the service.",
    );
  withSettings(install)
    .addOption(nameOption())
    .addOption(dataOption())
    .action(async (options) => (await import("./commands/install.ts")).install(context, options));
  program
    .command("uninstall")
    .summary("stop and remove the systemd service; data and sandboxes stay")
    .addOption(nameOption())
    .addOption(dataOption())
    .action(async (options) => (await import("./commands/install.ts")).uninstall(context, options));
  program
    .command("suspend")
    .summary("pause every sandbox and stop the platform; the next start resumes them")
    .description(
      "Pauses every running sandbox with its memory and stops the platform, for example before the host is restarted. The next start resumes them with the time that they had left.\n\nSandboxes whose memory cannot be saved in time are paused without it, and stay paused. runc keeps no memory.",
    )
    .option("--within <seconds>", "time for saving memory", "240")
    .option("--at-shutdown", "do nothing unless systemd is shutting this host down")
    .addOption(dataOption())
    .action(async (options) => (await import("./commands/suspend.ts")).suspend(context, options));
  program
    .command("service")
    .summary("run the platform for a service manager, until it is told to stop; sandboxes keep running")
    .addOption(dataOption())
    .action(async (options) => (await import("./commands/service.ts")).service(context, options));
}

function addRepairCommands(program: Command, context: OperatorContext): void {
  program
    .command("backup")
    .summary("write the platform's data to a file, while it runs")
    .description(
      "Writes database, keys, layers, templates, paused sandboxes and snapshots to a tar archive. The platform keeps running. Sandboxes that run are not included: pause them, or take snapshots.",
    )
    .argument("<file>", "the archive to write, outside the data folder")
    .addOption(dataOption())
    .action(async (file, options) => (await import("./commands/backup.ts")).backup(context, file, options));
  program
    .command("restore")
    .summary("put a backup into an empty data folder")
    .description(
      "Needs an empty data folder, and an empty database if SKERRY_DATABASE_URL names one of PostgreSQL. Does not start the platform.",
    )
    .argument("<file>", "an archive of `backup`")
    .addOption(dataOption())
    .action(async (file, options) => (await import("./commands/backup.ts")).restore(context, file, options));
  program
    .command("renew-secrets")
    .summary("make new keys and tokens if secrets.json and its copy are lost")
    .description(
      "Makes a new secrets.json for the existing database if the old file is lost or belongs to another database. Sandboxes, snapshots, templates and other keys stay.\n\nClients need the new API key. Existing sandboxes get new tokens when they are paused and resumed.",
    )
    .addOption(dataOption())
    .action(async (options) => (await import("./commands/renew-secrets.ts")).renewSecretsCommand(context, options));
}

function addTemplateCommands(program: Command, context: OperatorContext): void {
  const templates = program
    .command("templates")
    .summary("list, build and delete templates")
    .enablePositionalOptions()
    .description("Without a command, lists the templates with their tags, the state of their newest build, and their size.")
    .option("--json", "print JSON")
    .addOption(dataOption())
    .action(async (options) => (await import("./commands/templates-list.ts")).listTemplates(context, options));
  const collect = (value: string, values: readonly string[]) => [...values, value];
  templates
    .command("build")
    .summary("build a template from a Dockerfile")
    .description(
      "Builds the Dockerfile of a directory as a template, and shows each step. Every RUN is run in a sandbox; steps that did not change are taken from the cache.\n\nCtrl-C before the build has started leaves nothing behind. Afterwards the build goes on in the platform.",
    )
    .argument("[name]", "name of the template, as in NAME or NAME:TAG, or of one that ships")
    .argument("[dir]", "directory that COPY takes files from (default: the current one, or that of the template that ships)")
    .option("--shipped", "build all templates that ship, for all teams")
    .option("-f, --dockerfile <file>", "the Dockerfile (default: Dockerfile or e2b.Dockerfile in the directory)")
    .option("--cpu-count <n>", "virtual CPUs of its sandboxes (default: 2)", readNumber)
    .option("--memory-mb <n>", "memory of its sandboxes in MiB (default: 1024)", readNumber)
    .option("-t, --tag <tag>", "tag of this build, repeatable (default: default)", collect, [])
    .option("--start-cmd <command>", "command that runs in every sandbox (default: ENTRYPOINT and CMD of the Dockerfile)")
    .option("--ready-cmd <command>", "command that succeeds when the start command is ready (default: sleep 20)")
    .option("--build-arg <name=value>", "value of an ARG, repeatable; NAME alone takes the variable of that name", collect, [])
    .option(
      "--registry-auth <file>",
      "credentials for the registry of the image, as `skopeo login` writes them (default: where docker, podman and skopeo keep theirs)",
    )
    .option("--no-cache", "run every step again, and pull the image")
    .option("-v, --verbose", "show everything that the steps print")
    .addOption(dataOption())
    .action(async (name, directory, options) =>
      (await import("./commands/templates-shipped.ts")).buildTemplates(context, { name, directory, options }),
    );
  templates
    .command("delete")
    .summary("delete a template that no sandbox uses")
    .argument("<name>", "name or id of the template")
    .addOption(dataOption())
    .action(async (name, options) => (await import("./commands/templates-delete.ts")).deleteTemplate(context, name, options));
}

/** The API says which numbers it takes. */
function readNumber(value: string): string {
  if (!/^\d{1,9}$/.test(value)) throw new InvalidArgumentError("It must be a whole number.");
  return value;
}

function addInsightCommands(program: Command, context: OperatorContext): void {
  program
    .command("status")
    .summary("show whether the platform runs, its addresses, versions, counts and use of this host")
    .description(
      "Shows the platform's process, addresses, versions, counts by state, database, events, the use of memory and disk, when the certificate expires, and the newest errors of the log. Without root, the counts are missing.",
    )
    .option("--json", "print JSON")
    .addOption(dataOption())
    .action(async (options) => (await import("./commands/status.ts")).status(context, options));
  program
    .command("env")
    .summary('print the variables that clients need: eval "$(./skerry env)"')
    .description("Prints export statements for the variables that connect an E2B client to this platform.")
    .option("--all", "include the access token, the admin token and the ids of team and user")
    .option("--json", "print JSON")
    .addOption(dataOption())
    .action(async (options) => (await import("./commands/env.ts")).env(context, options));
  program
    .command("doctor")
    .summary("check this host and say how to fix what is missing")
    .description(
      "Tries what the platform needs from this host: kernel features, programs, disk space and ports. Says how to fix each failure.",
    )
    .option("--json", "print JSON")
    .addOption(dataOption())
    .action(async (options) => (await import("./commands/doctor.ts")).doctor(context, options));
  program
    .command("audit")
    .summary("show who requested which change, from where, and which requests were refused")
    .option("--since <time>", "how far back to begin: a number with m, h or d", "24h")
    .option("--team <id>", "only this team")
    .option("--outcome <name>", "only done, refused, failed or unknown")
    .option("--actor <name>", "only key:<id>, user:<id>, operator or anyone")
    .option("--json", "print one JSON object on each line")
    .addOption(dataOption())
    .action(async (options) => (await import("./commands/audit.ts")).audit(context, options));
  program
    .command("support")
    .summary("write an archive for a bug report, without secrets")
    .description(
      "Writes versions, the findings of doctor, the status, settings and the end of the log to an archive. Keys, tokens, passwords and URLs with them are removed. Works also when the platform does not run.",
    )
    .argument("[file]", "the archive to write (default: skerry-support-<time>.tar.gz)")
    .addOption(dataOption())
    .action(async (file, options) => (await import("./commands/support.ts")).support(context, file, options));
  program
    .command("logs")
    .summary("show the platform's log")
    .option("-f, --follow", "keep showing new lines")
    .option("-n, --lines <count>", "number of lines to show from the end of the log", "50")
    .option("--json", "print the lines as they are in the file")
    .addOption(dataOption())
    .action(async (options) => (await import("./commands/logs.ts")).logs(context, options));
}

function addDeveloperCommands(program: Command, context: OperatorContext): void {
  program
    .command("test")
    .summary("run the tests; a running platform is not touched")
    .description(
      "Sets up what the tests need in a folder of its own (SKERRY_TEST_CACHE, default /var/cache/skerry-test), then checks format, lint and types and runs the unit, integration and end-to-end tests.\n\nWithout --all it runs a sample of each matrix: crash points, runtimes, databases, long runs, fuzzing. The summary lists what was left out.",
    )
    .argument("[pattern]", "run only test files whose path contains this text")
    .option("--all", "run every case of every matrix (40 minutes on two cores)")
    .option("--part <k/n>", "run part k of n; the parts take about equally long")
    .option("--resume", "skip files that passed at this depth since the checkout last changed")
    .option("--save-durations", "record how long each file took in tests/run/durations.json, which orders and divides later runs")
    .action(async (pattern, options) => (await import("./commands/test.ts")).test(context, pattern, options));
  program
    .command("bench")
    .summary("measure the platform and its peers, such as the bare runtimes")
    .description(
      "Starts platforms of its own and measures them and their peers in the same run. Prints a table to stderr, and every sample as JSON to stdout.",
    )
    .argument(
      "[name]",
      "first-output, roundtrip, transfer, memory, agent, areas, lifecycle, build, interpreter, ingress, egress, volumes, api or observe; all by default",
    )
    .option("--transfer-mb <n>", "agent, ingress: size of what Skerry and nginx transfer (default: 1000)")
    .option("--large-mb <n>", "agent: size of the file that is transferred while the agent's memory is measured (default: 10000)")
    .option("--streams <n>", "agent: number of processes whose output is streamed at the same time (default: 1000)")
    .action(async (name, sizes) => (await import("./commands/bench.ts")).bench(context, name, sizes));
  program
    .command("serve")
    .summary("run the platform's process without set-up, configured by SKERRY_ variables")
    .option("--roles <list>", "comma-separated roles: api, edge, node (SKERRY_ROLES)")
    .option("--runtime <name>", "gvisor or runc (SKERRY_RUNTIME)")
    .addOption(dataOption())
    .action(async (options) => (await import("./commands/serve.ts")).serve(context, options));
}

function addSoakCommands(program: Command, context: OperatorContext): void {
  const soak = program.command("soak").summary("long runs that look for lost state and leftovers");
  soak
    .command("restore")
    .summary("take stateful programs through pauses, resumes and forks")
    .description(
      "Takes CPython, Node.js, a JVM, a Go program, PostgreSQL under pgbench and Chromium through pauses, resumes and forks on a platform of its own. After each step, each program checks its memory, files and processes; the first difference ends its run and fails the soak.\n\nNeeds gVisor, because runc keeps no memory. Prints progress to stderr and a table to stdout.",
    )
    .option("--cycles <n>", "number of pauses and resumes for each program", "100")
    .option("--forks <n>", "number of forks for each program, up to 16 at once as memory allows", "16")
    .option("--only <list>", "comma-separated programs: python, node, jvm, go, postgres, chromium")
    .option("--parallel <n>", "number of programs at once", "2")
    .option("--json", "print every sample as JSON instead of the table")
    .action(async (options) => (await import("./commands/soak.ts")).soakRestore(context, options));
  soak
    .command("lifecycle")
    .summary("take sandboxes through random creates, pauses, resumes and kills")
    .description(
      "Takes sandboxes through creates, pauses, resumes and kills in a random order on a platform of its own. Each sandbox has data on its disk and in its memory that must survive every resume. At the end, nothing may be left on the host or in the database, and the platform's memory must be back to normal.\n\nPrints progress to stderr and a table to stdout.",
    )
    .option("--steps <n>", "total number of creates, pauses, resumes and kills", "10000")
    .option("--at-once <n>", "number of sandboxes at once", "8")
    .option("--runtime <name>", "gvisor or runc", "gvisor")
    .option("--seed <n>", "repeat the steps of an earlier run")
    .option("--json", "print every sample as JSON instead of the table")
    .action(async (options) => (await import("./commands/soak.ts")).soakLifecycle(context, options));
}

function helpFooter(): string {
  const codes = Object.values(EXIT_CODES).map(({ code, meaning }) => `  ${String(code).padEnd(4)} ${meaning}`);
  return [
    "",
    "Exit codes:",
    ...codes,
    "",
    'To get started, run ./skerry up. Then run eval "$(./skerry env)" in the shell of a client.',
  ].join("\n");
}
