import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import { describeOnEachDatabase } from "./each-database.ts";
import { TeamCalls } from "./team-calls.ts";

const DAY_MS = 86_400_000;
const MISSING = { code: 404, message: "There is no such invitation: it was used, deleted, or has expired" };

describeOnEachDatabase("invitations", { inSample: "both" }, (api) => {
  const calls = new TeamCalls(api);
  const accept = (user: { token: string }, token: string, url = api().url) =>
    calls.as(user.token, "POST", "/invitations/accept", { body: { token }, url });

  it("are accepted once, however many try", async () => {
    const team = await calls.team();
    const owner = await calls.user(team, "owner");
    const path = `/teams/${team}/invitations`;
    const made = await calls.as(owner.token, "POST", path, { body: { role: "developer", email: "new@example.com" } });
    expect(made.body).toMatchObject({ role: "developer", email: "new@example.com", token: expect.stringMatching(/^inv_[0-9a-f]{64}$/) });
    const { token, ...shown } = made.body;
    expect((await calls.as(owner.token, "GET", path)).body).toEqual([shown]);
    expect((await accept(owner, token)).status).toBe(409);
    const users = await Promise.all(Array.from({ length: 3 }, () => calls.user()));
    await using other = await api().createSecond();
    const { url } = await other.listen();
    const answers = await Promise.all(users.map((user, index) => accept(user, token, index === 0 ? url : undefined)));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 404, 404]);
    const joined = answers.findIndex(({ status }) => status === 200);
    expect(answers[joined]?.body).toMatchObject({ teamID: team, role: "developer" });
    const members = (await calls.admin("GET", `/teams/${team}/members`)).body;
    expect(members.map(({ userID }: { userID: string }) => userID)).toEqual([owner.id, users[joined]?.id]);
    expect((await calls.as(owner.token, "GET", path)).body).toEqual([]);
  });

  it("end when they are withdrawn, and when they expire", async () => {
    const team = await calls.team();
    const user = await calls.user();
    const path = `/teams/${team}/invitations`;
    const invite = async (fields: object = {}) => (await calls.admin("POST", path, { role: "viewer", ...fields })).body;
    const [withdrawn, short, long] = [await invite(), await invite({ expiresIn: 60 }), await invite()];
    expect(Date.parse(long.expiresAt) - Date.parse(long.createdAt)).toBe(7 * DAY_MS);
    expect((await calls.admin("DELETE", `${path}/${withdrawn.invitationID}`)).status).toBe(204);
    expect((await calls.admin("DELETE", `${path}/${withdrawn.invitationID}`)).status).toBe(404);
    await using later = await api().createApi({ ownerId: "later" }, { now: () => api().store.clock.now() + 60_000 });
    const { url } = await later.listen();
    for (const { token } of [withdrawn, short]) expect((await accept(user, token, url)).body).toEqual(MISSING);
    for (const token of ["", "inv_", `inv_${"0".repeat(64)}`, "\0"]) expect((await accept(user, token)).body).toEqual(MISSING);
    expect((await accept(user, long.token, url)).status).toBe(200);
    const wrong = [
      {},
      { role: "king" },
      { role: "viewer", email: "x" },
      { role: "viewer", expiresIn: 59 },
      { role: "viewer", expiresIn: 1e9 },
    ];
    for (const body of wrong) expect((await calls.admin("POST", path, body)).status, JSON.stringify(body)).toBe(400);
    expect((await calls.admin("POST", `/teams/${randomUUID()}/invitations`, { role: "viewer" })).status).toBe(404);
  });

  it("of a team have a number", async () => {
    const path = `/teams/${await calls.team()}/invitations`;
    const one = () => calls.admin("POST", path, { role: "viewer" });
    const made = await Promise.all(Array.from({ length: 102 }, one));
    expect(made.filter(({ status }) => status === 201)).toHaveLength(100);
    expect((await one()).body).toMatchObject({ code: 429, message: expect.stringContaining("100 open invitations") });
    const [first] = (await calls.admin("GET", path)).body;
    await calls.admin("DELETE", `${path}/${first.invitationID}`);
    expect((await one()).status).toBe(201);
  });
});
