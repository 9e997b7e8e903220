import { DEFAULT_DATA_DIR, EXIT_CODES } from "@skerry/setup/folder";
import { Command, CommanderError, Option } from "commander";
import type { OperatorContext } from "./context.ts";
import { reportFailure } from "./report-failure.ts";

/** Runs one ./skerry command line and returns its exit code. Commands load their own modules, so that `env` stays quick. */
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
    .description("Sandboxes for code you don't trust, on this machine: E2B's API, gVisor's isolation, one command.")
    .version(context.version)
    .exitOverride()
    .showHelpAfterError("(./skerry --help lists the commands)")
    .addHelpText("after", helpFooter);
  addPlatformCommands(program, context);
  addRepairCommands(program, context);
  addInsightCommands(program, context);
  addDeveloperCommands(program, context);
  addSoakCommands(program, context);
  return program;
}

function dataOption(): Option {
  return new Option("--data <dir>", `data folder (SKERRY_DATA, else ${DEFAULT_DATA_DIR})`);
}

/** A data folder keeps what it was last told: the defaults are those of its first start. */
function withSettings(command: Command): Command {
  return command
    .option("--runtime <name>", "gvisor (at first) or runc")
    .option("--listen <address>", "address to listen on (at first 127.0.0.1)")
    .option("--api-port <port>", "port of the API (at first 4680)")
    .option("--edge-port <port>", "port of the edge, which leads into sandboxes (at first 4681)")
    .option("--domain <name>", "domain that sandbox host names end in (at first localhost:<edge port>)");
}

function addPlatformCommands(program: Command, context: OperatorContext): void {
  const up = program
    .command("up")
    .summary("set up what is missing, start the platform, run a first sandbox")
    .description("Sets up what is missing on this machine, starts the platform, runs a first sandbox and prints how to connect.")
    .option("-d, --detach", "return when the platform answers, instead of showing its log until Ctrl-C");
  withSettings(up)
    .addOption(dataOption())
    .action(async (options) => (await import("./commands/up.ts")).up(context, options));
  const restart = program
    .command("restart")
    .summary("the platform again, of this checkout as it is now; sandboxes go on")
    .description(
      "After an update, or with other settings: sets up what is missing, replaces the platform's process and tries a first sandbox. Sandboxes go on running; connections are cut for the second or two that it takes. What is not given stays as it was; SKERRY_ variables are read anew.",
    );
  withSettings(restart)
    .addOption(dataOption())
    .action(async (options) => (await import("./commands/restart.ts")).restart(context, options));
  program
    .command("down")
    .summary("stop the platform and every sandbox, leave nothing behind")
    .description(
      "Stops the platform and every sandbox. No process, namespace, interface, firewall table, mount or cgroup stays; data does.",
    )
    .option("--purge", "remove the data folder too")
    .addOption(dataOption())
    .action(async (options) => (await import("./commands/down.ts")).down(context, options));
}

function addRepairCommands(program: Command, context: OperatorContext): void {
  program
    .command("renew-secrets")
    .summary("new keys and tokens, where secrets.json and its copy are lost")
    .description(
      "Makes a new secrets.json for the database that is there, when the former one is lost or belongs to another database. Sandboxes, snapshots, templates and other keys stay. Clients need the new key; sandboxes that exist take new tokens when they are paused and resumed.",
    )
    .addOption(dataOption())
    .action(async (options) => (await import("./commands/renew-secrets.ts")).renewSecretsCommand(context, options));
}

function addInsightCommands(program: Command, context: OperatorContext): void {
  program
    .command("status")
    .summary("what runs, where, on what")
    .option("--json", "for programs")
    .addOption(dataOption())
    .action(async (options) => (await import("./commands/status.ts")).status(context, options));
  program
    .command("env")
    .summary('what a client needs: eval "$(./skerry env)"')
    .description("Prints export lines with which any E2B client talks to this platform.")
    .option("--all", "the access token, the admin token and the ids as well")
    .option("--json", "for programs")
    .addOption(dataOption())
    .action(async (options) => (await import("./commands/env.ts")).env(context, options));
  program
    .command("doctor")
    .summary("check what the platform stands on; each failure names the mend")
    .description("Checks what the platform stands on, by trying it, and names the mend for what does not work.")
    .option("--json", "for programs")
    .addOption(dataOption())
    .action(async (options) => (await import("./commands/doctor.ts")).doctor(context, options));
  program
    .command("logs")
    .summary("the platform's log")
    .option("-f, --follow", "go on with what is added")
    .option("-n, --lines <count>", "how many of the last lines", "50")
    .option("--json", "lines as they are in the file")
    .addOption(dataOption())
    .action(async (options) => (await import("./commands/logs.ts")).logs(context, options));
}

function addDeveloperCommands(program: Command, context: OperatorContext): void {
  program
    .command("test")
    .summary("run the tests (a platform in use is not touched)")
    .description(
      "Sets up what the tests need in a cache of its own (SKERRY_TEST_CACHE, default /var/cache/skerry-test), then runs format, lint, types, unit, integration and end-to-end tests. Without --all it takes a sample of every matrix (crash points, runtimes, databases, long runs, fuzzing); the summary says what it left out.",
    )
    .argument("[pattern]", "only test files whose path contains this")
    .option("--all", "every case of every matrix: forty minutes on two processors")
    .option("--part <k/n>", "the k-th of n parts that take about equally long; together they are the whole run")
    .option("--resume", "leave out the files that have passed at this depth since the checkout last changed")
    .option("--save-durations", "write how long each file took into tests/run/durations.json, which orders and divides later runs")
    .action(async (pattern, options) => (await import("./commands/test.ts")).test(context, pattern, options));
  program
    .command("bench")
    .summary("measure, beside the bare runtimes: a table, and every number as JSON")
    .description(
      "Measures platforms of its own, each beside its peers in the same run. The table goes to stderr, JSON with every number to stdout.",
    )
    .argument("[name]", "first-output, roundtrip, transfer, memory, agent, areas or lifecycle; all by default")
    .option("--transfer-mb <n>", "agent: size of the file that is sent beside nginx (1000)")
    .option("--large-mb <n>", "agent: size of the file whose transfer must not take memory (10000)")
    .option("--streams <n>", "agent: processes that are followed at once (1000)")
    .action(async (name, sizes) => (await import("./commands/bench.ts")).bench(context, name, sizes));
  program
    .command("serve")
    .summary("run the platform in the foreground (what up starts; settings are SKERRY_ variables)")
    .option("--roles <list>", "api, edge, node: any of them (SKERRY_ROLES)")
    .option("--runtime <name>", "gvisor or runc (SKERRY_RUNTIME)")
    .addOption(dataOption())
    .action(async (options) => (await import("./commands/serve.ts")).serve(context, options));
}

function addSoakCommands(program: Command, context: OperatorContext): void {
  const soak = program.command("soak").summary("long runs that look for what is lost or left over");
  soak
    .command("restore")
    .summary("programs with state, through pauses, resumes and forks")
    .description(
      "Takes CPython, Node.js, a JVM, a Go program, PostgreSQL under pgbench, and Chromium through cycles of pause and resume and through forks, on a platform of its own. Each proves after each step that its memory, its files and its processes are what they were. On gVisor only: runc keeps no memory. Progress goes to stderr, a table to stdout; it fails with the first difference of each.",
    )
    .option("--cycles <n>", "pauses and resumes of each", "100")
    .option("--forks <n>", "forks of each, as many at once as memory allows (at most 16)", "16")
    .option("--only <list>", "python, node, jvm, go, postgres, chromium: some of them")
    .option("--parallel <n>", "workloads at once", "2")
    .option("--json", "every number instead of the table")
    .action(async (options) => (await import("./commands/soak.ts")).soakRestore(context, options));
  soak
    .command("lifecycle")
    .summary("sandboxes, through creates, pauses, resumes and kills in a random order")
    .description(
      "Takes sandboxes through creates, pauses, resumes and kills in a random order, on a platform of its own. Each has something on its disk and in its memory that must be there after every resume. In the end nothing may be left on the machine or in the database, and the platform must have its memory back. Progress goes to stderr, a table to stdout.",
    )
    .option("--steps <n>", "creates, pauses, resumes and kills, all together", "10000")
    .option("--at-once <n>", "sandboxes at once", "8")
    .option("--runtime <name>", "gvisor or runc", "gvisor")
    .option("--seed <n>", "the same steps again, as after a failure")
    .option("--json", "every number instead of the table")
    .action(async (options) => (await import("./commands/soak.ts")).soakLifecycle(context, options));
}

function helpFooter(): string {
  const codes = Object.values(EXIT_CODES).map(({ code, meaning }) => `  ${String(code).padEnd(4)} ${meaning}`);
  return ["", "Exit codes:", ...codes, "", 'First steps: ./skerry up    then: eval "$(./skerry env)" in the shell of a client.'].join("\n");
}
