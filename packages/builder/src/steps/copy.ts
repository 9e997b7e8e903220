import { asError, PlatformError } from "@skerry/base";
import { BadSubstitution } from "./expand.ts";
import { type PlanStep, StepFailure, variablesKey } from "./step.ts";
import { expandAll } from "./variables.ts";

const COPY_TIMEOUT_MS = 600_000;

/** `[source, destination, owner, mode]`, also of ADD. */
export const planCopy: PlanStep = ({ type, args: [source = "", destination = "", owner = "", mode = ""], archive, filesHash }, context) => {
  if (source === "" || destination === "") throw new StepFailure(`${type} requires a source and a destination argument`);
  if (filesHash === "") throw new StepFailure(`${type} requires files hash to be set`);
  const hasVariables = destination.includes("$") || owner.includes("$");
  return {
    inputs: [source, destination, owner, mode, filesHash, context.user, context.workdir, hasVariables ? variablesKey(context.env) : null],
    resume: () => context,
    async run(tools) {
      if (archive === "") throw new StepFailure(`the files of this step were not uploaded: there is no archive with the hash ${filesHash}`);
      try {
        const [to = "", by = ""] = await expandAll([destination, owner], context, tools, context.user);
        const bytes = await tools.archive(archive);
        const sandbox = await tools.sandbox();
        const { user, workdir } = context;
        const place = { source, destination: to, owner: by, mode, user, workdir, timeoutMs: COPY_TIMEOUT_MS, signal: tools.signal };
        const { entries, warnings } = await sandbox.copy({ archive: bytes, ...place });
        for (const warning of warnings) tools.log("warn", warning);
        tools.log("debug", `${entries} files and directories placed`);
      } catch (error) {
        throw asCopyFailure(error, filesHash);
      }
      return { context, wrote: true };
    },
  };
};

function asCopyFailure(error: unknown, filesHash: string): Error {
  if (error instanceof BadSubstitution) return new StepFailure(`failed to move files in sandbox: ${error.message}`, { cause: error });
  if (!(error instanceof PlatformError)) return asError(error);
  if (error.code === "build_copy_failed") return new StepFailure(error.message, { cause: error });
  if (error.code !== "blob_missing") return error;
  return new StepFailure(`the files of this step are gone: upload the archive with the hash ${filesHash} again`, { cause: error });
}
