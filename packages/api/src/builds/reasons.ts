// What builds fail with, in words for their team. Clients compare some of these texts.

import type { BuildReason } from "@skerry/store";

export const SUPERSEDED_WAITING: BuildReason = { message: "The build was canceled because it was superseded by a newer one." };
export const CANCELLED: BuildReason = { message: "build was cancelled" };
export const WAITED_TOO_LONG: BuildReason = { message: "build is in waiting state for too long" };
export const TOOK_TOO_LONG: BuildReason = { message: "build status polling timed out. Maximum build time is 1h0m0s." };
export const QUEUED_TOO_LONG: BuildReason = { message: "no machine had room for the build in time. Start it again later" };
export const INTERNAL: BuildReason = {
  message: "An internal error occurred. Please try again or contact support with the build ID.",
};
export const BASE_GONE: BuildReason = { message: "error getting base template, you may need to rebuild it first", step: "base" };
export const CREDENTIALS_GONE: BuildReason = {
  message: "the platform was restarted, and does not store the credentials of the registry. Start the build again",
  step: "base",
};
export const INTERRUPTED: BuildReason = { message: "the build was interrupted too often by restarts of its machine. Start it again" };
