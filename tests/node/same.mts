/** What the TypeScript client says and does with what it is given on standard input, to be held against the Python one. */

import { text } from "node:stream/consumers";
import { Client, next_step } from "../../clients/typescript/src/index.js";
import { backoff, wait_before } from "../../clients/typescript/src/exchange.js";

const { verdicts, replies, rows } = JSON.parse(await text(process.stdin));
const client = new Client();
await client.save_many(rows, { source: "user", idempotency_key: "all" });
await client.save_many(rows.slice(0, 1), { idempotency_key: "alone", hand_over: true });
await client.save(rows[0], { citations: ["ADR-7"], idempotency_key: "one" });
await client.record({ text: rows[0], who: "ada", conversation: "monday", time: "2026-11-23T09:00:00Z", idempotency_key: "said" });
const methods = Object.getOwnPropertyNames(Client.prototype).filter((name) => name !== "constructor");
const waits = replies.map((reply: never) => [wait_before(reply, 2, 0.5), wait_before(reply, 9, 1)]);
console.log(JSON.stringify({ methods, waits, backoff: backoff(3, 0.25), sentences: verdicts.map(next_step) }));
