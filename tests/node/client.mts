/** The TypeScript client against a served gate, and against servers that answer oddly. Started by
 * tests/integration/client/test_typescript.py, which gives the gate and its tokens in the environment. */

import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import test from "node:test";
import {
  ApiError, Client, DeadLetter, Gated, OddAnswer, QueueFull, Unreachable, Unsendable, VouchgateError,
  append_to, error_of_problem, is_problem, next_step, type Delivery, type ValidationResult,
} from "../../clients/typescript/src/index.js";

const given = (name: string) => process.env[name] ?? assert.fail(name);
const client = new Client(); // of the environment
const ungranted = new Client(given("VOUCHGATE_URL"), given("UNGRANTED"));
const user = { source: "user" } as const;

test("a verdict is given back whatever it is", async () => {
  const stored = await client.save("The ledger is in Vilnius.", user);
  assert.deepEqual([stored.outcome, stored.approved, next_step(stored)], ["stored", true, `Nothing more to do: it is stored as ${stored.memory_id}.`]);
  assert.equal((await client.save("The ledger is in Vilnius.", user)).rule, "duplicate");
  assert.equal((await client.save("I think the ledger is lost.", user)).outcome, "blocked");
  const queued = await ungranted.save("The ledger has 40 pages.");
  assert.deepEqual([queued.outcome, queued.evidence.claim.memory_type, queued.evidence.claim.source], ["queued", "fact", "ai_synthesis"]);
  const named = await ungranted.check("The ledger has 41 columns.", user);
  assert.match(next_step(named), /counts as ai_synthesis, because the source user is not granted to this token/);
  assert.equal(named.decision_id, null);
});

test("the same key is decided once", async () => {
  const key = { ...user, idempotency_key: "note 7" };
  const [first, again] = [await client.save("Trains to Riga are blue.", key), await client.save("Trains to Riga are blue.", key)];
  assert.equal(first.decision_id, again.decision_id);
  await assert.rejects(client.save("Trains to Riga are red.", key), (error: ApiError) => error.code === "idempotency_key_reused" && error.idempotency_key === "note 7");
});

test("many are as one, and a bad one spoils no other", async () => {
  const rows = [
    "Depot A opens at nine.", { content: "I guess depot B is closed." }, { content: "Depot C opens at ten.", memory_type: "rumour" as "fact" },
    "half a pair: \ud83d", { content: "x", metadata: { x: "x".repeat(2 ** 20) } }, 7 as unknown as string,
    { content: "Depot G opens at one.", source: "user", user_id: null, citations: null }, { content: "Depot H opens at two.", validity_horizon: new Date("2031-01-01") },
  ] as const;
  const found = await client.save_many(rows, { ...user, idempotency_key: "all" });
  const shown = found.map((row) => (is_problem(row) ? `${row.status} ${row.code}` : row.outcome));
  assert.deepEqual(shown, ["stored", "blocked", "422 invalid_request", "422 invalid_request", "413 body_too_large", "422 invalid_request", "stored", "stored"]);
  const [bad] = found.filter((row) => is_problem(row));
  assert.ok(error_of_problem(bad!) instanceof ApiError);
  const ids = (all: typeof found) => all.map((row) => (is_problem(row) ? null : row.decision_id));
  assert.deepEqual(ids(await client.save_many(rows, { ...user, idempotency_key: "all" })), ids(found), "sent again it is answered the same");
  assert.deepEqual(await client.save_many([]), []);
});

test("reading", async () => {
  const [memory] = (await client.memories({ q: "Vilnius", limit: 5 })).items;
  assert.equal(memory?.content, "The ledger is in Vilnius.");
  assert.equal((await client.memory(memory.id)).id, memory.id);
  assert.equal((await client.evidence(memory.id)).claim.content, memory.content);
  assert.equal((await client.decision(memory.decision_id)).memory_id, memory.id);
  assert.ok("proof" in (await client.receipt(memory.decision_id)));
  const { items: [waiting] } = await ungranted.pending({ limit: 1 });
  assert.equal((await ungranted.pending_claim(waiting!.queue_id)).content, "The ledger has 40 pages.");
  await assert.rejects(ungranted.answer(waiting!.queue_id, { content: "The ledger has 42 pages." }), ApiError); // nobody asked
  assert.deepEqual((await client.whoami()).sources.includes("user"), true);
  assert.equal((await client.check_document("Nothing is cited here.")).passed, false);
  assert.equal((await client.corroborate("The kiln cools in 5 hours.", [{ text: "The kiln cools in 5 hours." }])).hits.length, 1);
  await assert.rejects(client.impact("ADR-7"), (error: ApiError) => error.status === 403);
  for (const unknown of ["mem_0", "a/b", "..", ""]) await assert.rejects(client.memory(unknown), (error: ApiError) => error.code === "not_found");
});

test("a gated body runs only for what is stored, and every text is checked", async () => {
  const written: unknown[] = [];
  const remember = client.gated((...texts: unknown[]) => written.push(texts), user);
  const stored = await remember("Ann wants tea in the morning.", 7, { tags: ["drinks"] }, null);
  assert.ok(stored instanceof Gated && stored.ran);
  assert.deepEqual([stored.value, stored.verdict.evidence.claim.content], [1, "Ann wants tea in the morning.\ntags\ndrinks"]);
  const blocked = await remember("Ann wants milk.", { note: "I think she said so." });
  assert.deepEqual([blocked.ran, blocked.value, blocked.next_step], [false, undefined, next_step(blocked.verdict)]);
  const masked = await remember("The office pays with 4111 1111 1111 1111.");
  assert.deepEqual([masked.ran, masked.verdict.outcome, masked.next_step.includes("with masks")], [false, "stored", true]);
  for (const unseen of [[7], ["a", new Client()], ["a", Buffer.from("b")], ["a", () => "b"]]) await assert.rejects(remember(...unseen), TypeError);
  const k = Symbol();
  const matched = "Ann wants rice; and the firewall may be off".match(/Ann wants rice/);
  const odd = [matched, Object.assign(["Ann wants oats."], { note: "hidden" }), { a: "Ann wants corn.", [k]: "hidden" }, Object.defineProperty({ a: "Ann wants peas." }, "b", { value: "hidden" })];
  for (const unseen of [...odd, [odd[1]], new Map([["a", odd[2]]]), Object.assign(new Date(), { note: "hidden" })]) await assert.rejects(remember("Ann wants figs.", unseen), /nobody can see/);
  const turn = ["Ann wants a walk at ten."];
  const keeping = client.gated((lines: string[], more: { of: string[] }) => [...lines, ...more.of], user);
  const first = keeping(turn, { of: turn });
  turn.push("The firewall may be off.");
  assert.deepEqual((await first).value, ["Ann wants a walk at ten.", "Ann wants a walk at ten."]);
  const of_match = client.gated((match: RegExpMatchArray) => match.input, { claim: (match) => ({ content: String(match.input), ...user }) });
  assert.equal((await of_match("Ann has a hat of felt.".match(/hat/) as RegExpMatchArray)).value, "Ann has a hat of felt.");
  const keeper = { kept: "", keep: client.gated(async function (this: { kept: string }, title: string, note: string) { return (this.kept = title + note); }, { ...user, text: 1 }) };
  assert.equal((await keeper.keep("Trains", "Trains to Tallinn are green.")).value, keeper.kept);
  const made = client.gated((title: string, body: string) => title + body, { claim: (title, body) => ({ content: `${title}: ${body}`, ...user }) });
  assert.equal((await made("Depot", "It opens at three.")).verdict.evidence.claim.content, "Depot: It opens at three.");
  assert.throws(() => client.gated((text: string) => text, { text: 0, claim: (text) => text }), TypeError);
  assert.equal(written.length, 1);
  const full = () => { throw new Error("the disk is full"); };
  await assert.rejects(client.gate("Depot K opens at six.", user, full), /the disk is full\nvouchgate: the claim is stored as mem_/);
});

test("a host records what is said and returned, and an agent cites it", async () => {
  const recorder = new Client(given("VOUCHGATE_URL"), given("RECORDER"));
  const kept = await recorder.record({ text: "I prefer tabs to spaces.", who: "ada", time: new Date("2026-11-23T09:00:00Z") });
  assert.equal(append_to("I prefer tabs.", kept), `I prefer tabs.\n(record:${kept.id})`);
  const stored = await ungranted.save(`The user prefers tabs to spaces (${kept.cite}).`, { memory_type: "preference" });
  assert.deepEqual([stored.outcome, stored.evidence.label], ["stored", "FACT"]);
  const look = recorder.recorded(async (depot: string) => ({ depot, wants: "the firewall off" }), { who: "look" });
  const [read, cite] = (await look("A")).split("\n");
  assert.equal(read, '{"depot":"A","wants":"the firewall off"}');
  assert.equal((await ungranted.save(`The user wants the firewall off ${cite}.`)).outcome, "queued");
  await assert.rejects(ungranted.record({ text: "I prefer spaces.", who: "ada" }), (error: ApiError) => error.code === "role_not_allowed");
  await assert.rejects(recorder.save("The user prefers spaces."), (error: ApiError) => error.code === "role_not_allowed");
  for (const odd of [9n, () => 1, { nine: 9n }]) {
    assert.equal((await recorder.recorded(() => odd, { who: "look" })()).split("\n(record:rec_")[0], String(odd));
  }
  const told: unknown[] = [];
  const warn = console.warn;
  console.warn = (text: unknown) => void told.push(text);
  assert.equal(await ungranted.recorded(() => "Nine parcels.", { who: "look" })(), "Nine parcels.");
  console.warn = warn;
  assert.match(String(told), /an output of look could not be put down: 403/);
  await assert.rejects(recorder.recorded(() => { throw new RangeError("no depot"); }, { who: "look" })(), RangeError);
});

test("deliveries are applied in order until nothing is left", async () => {
  for (const place of ["a", "b", "c"]) await client.save(`Shelf ${place} holds ${place.charCodeAt(0)} jars.`, { ...user, delivery: { sink: "notes", place } });
  const applied: string[] = [];
  const apply = (delivery: Delivery) => {
    applied.push(delivery.place);
    if (delivery.place === "b") throw new DeadLetter("it has no shelf");
  };
  assert.deepEqual(await client.deliver("notes", apply), { done: 2, failed: 0, dead: 1 });
  assert.deepEqual(applied, ["a", "b", "c"]);
  const { items } = await client.deliveries({ sink: "notes" });
  assert.deepEqual(items.map((each) => each.state).sort(), ["dead", "delivered", "delivered"]);
  await client.save("Shelf d holds 9 jars.", { ...user, delivery: { sink: "notes", place: "d" } });
  const [leased] = await client.lease_deliveries("notes");
  await client.delivery_failed(leased!, "not now", { final: true });
  await assert.rejects(client.delivery_done(leased!), ApiError);
});

test("what is stored is handed over with its answer", async () => {
  const held = { sink: "shelves", place: "e" };
  const found = await client.save("Shelf e holds 101 jars.", { ...user, delivery: held, hand_over: true, idempotency_key: "shelf e" });
  const again = await client.save("Shelf e holds 101 jars.", { ...user, delivery: held, hand_over: true, idempotency_key: "shelf e" });
  assert.equal(again.delivery?.id, found.delivery?.id);
  const applied: string[] = [];
  const apply = (delivery: Delivery) => void applied.push(delivery.content);
  assert.deepEqual(await client.deliver("shelves", apply, { handed: found.delivery }), { done: 0, failed: 0, dead: 0 }, "the answer that was given last counts");
  assert.deepEqual(await client.deliver("shelves", apply, { handed: again.delivery }), { done: 1, failed: 0, dead: 0 });
  assert.deepEqual(applied, ["Shelf e holds 101 jars.", "Shelf e holds 101 jars."]);
  const [row] = await client.save_many([{ content: "Bench f seats 7.", delivery: { ...held, place: "f" } }], { ...user, hand_over: true });
  assert.ok(row && !is_problem(row) && row.delivery);
  const refuse = () => { throw new DeadLetter("no bench"); };
  assert.deepEqual(await client.deliver("shelves", refuse, { handed: row.delivery }), { done: 0, failed: 0, dead: 1 });
  const [bad] = await client.save_many(["I guess the pier is closed.", ""].slice(1), { ...user, hand_over: true });
  assert.ok(bad && is_problem(bad) && bad.status === 422);
  await assert.rejects(new Client(given("VOUCHGATE_URL"), "vg_unknown").save_many(["x"]), (error: ApiError) => error.status === 401);
});

test("a full queue is said at once", async () => {
  for (const number of [1, 2, 3]) await ungranted.save(`Crate ${number * 37} is in hall ${number}.`).catch(() => {});
  const full = (error: QueueFull) => error instanceof QueueFull && error.retry_after === 7 && error.next_step !== "";
  await assert.rejects(ungranted.save("Barrel 5 is in the yard."), full);
  const [row] = await ungranted.save_many(["Barrel 6 is in the yard."]);
  assert.ok(row && is_problem(row) && full(error_of_problem(row) as QueueFull));
});

/** A server that answers in turn, the last answer for ever; gives what was asked of it. */
async function answering(answers: ((response: ServerResponse) => void)[], use: (client: Client, asked: IncomingMessage[]) => Promise<void>, more = {}) {
  const asked: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    asked.push(request);
    request.resume().on("end", () => (answers.length > 1 ? answers.shift()! : answers[0]!)(response));
  });
  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  try {
    await use(new Client(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`, "vg_secret", more), asked);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

const replying = (status: number, body: unknown, headers: Record<string, string> = {}) => (response: ServerResponse) =>
  void response.writeHead(status, { "Content-Type": "application/json", ...headers }).end(typeof body === "string" ? body : JSON.stringify(body));
const problem = { "Content-Type": "application/problem+json" };

test("what is tried again, with one key", async () => {
  const verdict = await client.check("The quay is closed at night.", user);
  const stored = { ...verdict, decision_id: "dec_1", memory_id: "mem_1" };
  const busy = replying(503, "later", { "Content-Type": "text/plain" });
  await answering([busy, (response) => void response.destroy(), replying(201, stored)], async (there, asked) => {
    assert.equal((await there.save("The quay is closed at night.", user)).memory_id, "mem_1");
    assert.equal(asked.length, 3);
    assert.equal(new Set(asked.map((each) => each.headers["idempotency-key"])).size, 1);
    assert.equal(asked[0]!.headers.authorization, "Bearer vg_secret");
  });
  const row503 = { status: 503, code: "storage_unavailable", detail: "Not now." };
  await answering([replying(200, { results: [row503, stored] }), replying(200, { results: [stored, stored] })], async (there) => {
    assert.equal(((await there.save_many(["The quay is closed at night.", "x"])) as ValidationResult[])[0]!.memory_id, "mem_1");
  });
  for (const code of ["queue_full", "stopped", "read_only"]) {
    await answering([replying(429, { code, detail: "No.", status: 429 }, problem)], async (there, asked) => {
      await assert.rejects(there.save("x"), ApiError);
      assert.equal(asked.length, 1);
    });
  }
  await answering([replying(429, { code: "rate_limited", detail: "No." }, { ...problem, "Retry-After": "61" })], async (there, asked) => {
    await assert.rejects(there.save("x"), (error: ApiError) => error.retry_after === 61);
    assert.equal(asked.length, 1);
  });
});

test("an odd answer is nobody's yes", async () => {
  const verdict = { ...(await client.check("The quay is open at night.", user)), decision_id: "dec_1", memory_id: "mem_1" };
  const odd = [
    replying(302, "", { Location: "http://127.0.0.1:1/" }), replying(201, "<html>", { "Content-Type": "text/html" }), replying(201, "{"), replying(201, []), replying(201, {}),
    replying(202, verdict), replying(201, { ...verdict, approved: false }), replying(201, { ...verdict, outcome: "kept" }),
    replying(201, verdict, { "Content-Encoding": "gzip" }), (response: ServerResponse) => void response.writeHead(201, { "Content-Type": "application/json" }).end(Buffer.from([0x22, 0xff, 0x22])),
    replying(201, { ...verdict, memory_id: null }), replying(202, { ...verdict, outcome: "queued", approved: false, held: false, memory_id: null }), replying(201, { ...verdict, decision_id: null }), replying(500, "no", { "Content-Type": "text/plain" }),
  ];
  for (const [number, answer] of odd.entries()) {
    await answering([answer], async (there, asked) => {
      await assert.rejects(there.save("x"), (error: unknown) => error instanceof OddAnswer && Boolean(error.idempotency_key), `${number}`);
      assert.equal(asked.length, 1);
    });
  }
  for (const results of [[], [verdict], [verdict, verdict, verdict], [verdict, { ...verdict, approved: false }], [verdict, {}], [verdict, null], null]) {
    await answering([replying(200, { results })], (there) => assert.rejects(there.save_many(["x", "y"]), OddAnswer));
  }
  await answering([replying(200, { items: {}, next: null })], (there) => assert.rejects(there.memories(), OddAnswer));
  await answering([replying(200, { items: [] })], (there) => assert.rejects(there.memories(), OddAnswer));
});

test("time-outs hold for the beginning of an answer and for each part of it", async () => {
  await answering([() => {}], (there) => assert.rejects(there.save("x"), (error: Unreachable) => error.message === "No answer came in time" && error.idempotency_key !== null), { timeout: 0.2, retries: 0 });
  const begun = (response: ServerResponse) => void response.writeHead(200, { "Content-Type": "application/json" }).write("{");
  await answering([begun], (there) => assert.rejects(there.whoami(), Unreachable), { timeout: 0.2, retries: 0 });
  const slowly = (response: ServerResponse) => {
    const parts = ['{"items"', ":[],", '"next":', "null}"];
    response.writeHead(200, { "Content-Type": "application/json" });
    const timer = setInterval(() => (parts.length ? response.write(parts.shift()) : (clearInterval(timer), response.end())), 600);
  };
  await answering([slowly], async (there) => assert.deepEqual((await there.memories()).items, []), { timeout: 2, retries: 0 });
});

test("what cannot be sent is not, and what cannot be used is refused without the token", async () => {
  await answering([replying(500, {})], async (there, asked) => {
    const circle: Record<string, unknown> = {};
    circle["circle"] = circle;
    const metadata = [{ x: NaN }, { x: "\udc80" }, { "\udc80": 1 }, { x: new Map() }, { x: new Date(NaN) }, { x: () => 1 }, { x: [undefined] }, { x: 1n }, circle];
    for (const each of metadata) await assert.rejects(there.save("x", { metadata: each as never }), (error: unknown) => error instanceof Unsendable && error instanceof VouchgateError);
    for (const key of ["", " a", "a\nb", "é", "x".repeat(256)]) await assert.rejects(there.save("x", { idempotency_key: key }), Unsendable);
    await assert.rejects(there.memories({ q: "\udc80" }), Unsendable);
    await assert.rejects(there.save(7 as unknown as string), TypeError);
    assert.equal(asked.length, 0);
  });
  await assert.rejects(new Client("http://127.0.0.1:9", "vg_secret", { retries: 1 }).save("x"), (error: unknown) => error instanceof Unreachable && error.idempotency_key !== null);
  const wrong: [string, string, object?][] = [
    ["127.0.0.1:80", "vg_secret"], ["ftp://h", "vg_secret"], ["http://a:b@h", "vg_secret"], ["http://h?x", "vg_secret"], ["http://h", "vg secret"],
    ["http://h", "vg_secret", { timeout: 0 }], ["http://h", "vg_secret", { timeout: NaN }], ["http://h", "vg_secret", { retries: -1 }],
  ];
  for (const [url, token, more] of wrong) assert.throws(() => new Client(url, token, more), (error: Error) => error instanceof RangeError && !/secret/.test(error.message));
  await assert.rejects(new Client(given("VOUCHGATE_URL"), "vg_unknown").whoami(), (error: ApiError) => error.status === 401 && !/vg_unknown/.test(String(error)));
});
