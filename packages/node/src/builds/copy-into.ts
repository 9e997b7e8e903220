// Sends the archive of a COPY step to the agent, which places its files. The archive is as large as its team likes, and the guest may have
// taken over the agent: nothing is held in memory, and the answer is bounded.

import { request } from "node:http";
import { Readable } from "node:stream";
import { finished, pipeline } from "node:stream/promises";
import { asError } from "@skerry/base";
import { type BuildCopy, copyFailed, sandboxLost } from "@skerry/builder";
import { AGENT_COPY_PATH, AGENT_PORT } from "@skerry/wire";
import { durationText } from "./duration-text.ts";
import { ownConnection } from "./own-connection.ts";
import type { CommandTarget } from "./run-command.ts";

const MAX_ANSWER_BYTES = 256 * 1024;
const MAX_MESSAGE_LENGTH = 1_000;
const MOST_WARNINGS = 20;

type Copied = Awaited<ReturnType<import("@skerry/builder").BuildSandbox["copy"]>>;

interface Answer {
  readonly status: number;
  readonly text: string;
}

/** Throws the reason of `copy.signal` when that is aborted, and PlatformError("build_copy_failed" | "build_sandbox_lost"). */
export async function copyInto(target: CommandTarget, copy: BuildCopy): Promise<Copied> {
  copy.signal.throwIfAborted();
  const deadline = AbortSignal.timeout(copy.timeoutMs);
  try {
    return readAnswer(await send(target, copy, AbortSignal.any([copy.signal, target.lost, deadline])));
  } catch (error) {
    copy.signal.throwIfAborted();
    if (deadline.aborted) throw copyFailed(`failed to extract files: timed out after ${durationText(copy.timeoutMs)}`, error);
    throw error;
  }
}

async function send({ address, token }: CommandTarget, copy: BuildCopy, signal: AbortSignal): Promise<Answer> {
  const { source, destination, workdir, user, owner, mode } = copy;
  const query = new URLSearchParams({ source, destination, workdir, user, owner, mode });
  const path = `${AGENT_COPY_PATH}?${query}`;
  const headers = { "Content-Type": "application/x-tar", "X-Access-Token": token };
  const agent = ownConnection();
  const outgoing = request({ host: address, port: AGENT_PORT, path, method: "POST", headers, agent, signal });
  const answer = new Promise<Answer>((resolve, reject) => {
    let isAnswered = false;
    outgoing.once("response", (response) => {
      isAnswered = true;
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (piece: string) => {
        text += piece;
        if (text.length > MAX_ANSWER_BYTES) outgoing.destroy(new Error("the answer of the agent is too long"));
      });
      finished(response).then(() => resolve({ status: response.statusCode ?? 0, text }), reject);
    });
    outgoing.once("error", reject);
    outgoing.once("close", () => {
      if (!isAnswered) reject(new Error("the connection ended without an answer"));
    });
  });
  const body = Readable.from(copy.archive, { objectMode: false });
  let archiveError: unknown;
  body.once("error", (error) => {
    archiveError = error;
  });
  try {
    // The agent may refuse an archive before its end: then its answer counts.
    const [, answered] = await Promise.all([pipeline(body, outgoing).catch(() => undefined), answer]);
    if (archiveError !== undefined) throw archiveError;
    return answered;
  } catch (error) {
    if (archiveError !== undefined) throw archiveError;
    throw sandboxLost("the sandbox of this step was lost: its agent does not answer", asError(error));
  } finally {
    body.destroy();
    outgoing.destroy();
    agent.destroy();
  }
}

function readAnswer({ status, text }: Answer): Copied {
  const body = parseObject(text);
  if (status !== 200) throw copyFailed(messageOf(body.message) ?? `failed to extract files: status ${status}`);
  const warnings = Array.isArray(body.warnings) ? body.warnings.flatMap((warning) => messageOf(warning) ?? []) : [];
  return { entries: Number.isSafeInteger(body.entries) ? (body.entries as number) : 0, warnings: warnings.slice(0, MOST_WARNINGS) };
}

function parseObject(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

function messageOf(value: unknown): string | undefined {
  return typeof value === "string" ? value.slice(0, MAX_MESSAGE_LENGTH) : undefined;
}
