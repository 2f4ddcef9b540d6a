/** Many claims in as few requests as the service takes. */

import { createHash } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { body_reader, is_problem, kept, submitted, type Call, type HttpReply, type Problem } from "./answers.js";
import { checked_key, claim_of, preferred, VERDICTS, type ClaimOptions, type SaveOptions } from "./claims.js";
import { ApiError, OddAnswer, Unsendable, VouchgateError } from "./errors.js";
import { as_json, backoff, exchange, MOST_WAITED, type Config } from "./exchange.js";
import type { ValidationResult } from "./generated/api.js";

const MOST_ROWS = 500; // a policy may say less
const MOST_BYTES = 1024 * 1024; // of a body
const PATIENCE = 0.7; // seconds that a row may add
const OF_THE_CALLER = ["role_not_allowed", "rate_limited"]; // and no fault of the claim's
const FRAME = Buffer.byteLength('{"claims":[]}');

/** A claim as `save_many` takes it: its text, or that and what else is said of it. */
export type ClaimRow = string | ({ content: string } & ClaimOptions);

interface Row {
  readonly place: number; // in the list
  readonly body: string;
  readonly bytes: number;
}

/** Sends all claims, in order; one result each. See `Client.save_many`. */
export async function save_many(config: Config, claims: readonly ClaimRow[], options: SaveOptions): Promise<(ValidationResult | Problem)[]> {
  const { idempotency_key, hand_over: _, ...common } = options;
  const prefer = claims.length === 1 ? preferred(options) : undefined;
  const key = checked_key(idempotency_key);
  const found = claims.map((claim, place) => row_of(claim, place, common));
  const results = found.map((each) => ("body" in each ? undefined : each)) as (ValidationResult | Problem | undefined)[];
  const waiting = batches(found.filter((each) => "body" in each));
  try {
    for (let batch = waiting.shift(); batch !== undefined; batch = waiting.shift()) {
      try {
        const answered = await send(config, batch, key, prefer);
        batch.forEach((row, index) => (results[row.place] = answered[index]));
      } catch (error) {
        if (!(error instanceof ApiError) || error.code !== "batch_too_large" || batch.length === 1) throw error;
        const half = Math.floor(batch.length / 2);
        waiting.unshift(batch.slice(0, half), batch.slice(half));
      }
    }
  } catch (error) {
    if (error instanceof VouchgateError) error.idempotency_key = key;
    throw error;
  }
  return results as (ValidationResult | Problem)[];
}

function row_of(claim: ClaimRow, place: number, common: ClaimOptions): Row | Problem {
  try {
    const { content, ...said } = typeof claim === "string" ? { content: claim } : claim;
    if ("idempotency_key" in said) throw new TypeError("a list of claims has one idempotency_key, and its claims none of their own");
    const body = as_json(claim_of(content, { ...common, ...said }));
    const bytes = Buffer.byteLength(body);
    if (FRAME + bytes <= MOST_BYTES) return { place, body, bytes };
    return { status: 413, code: "body_too_large", detail: `It is over ${MOST_BYTES} bytes. It was not sent.` };
  } catch (error) {
    if (!(error instanceof Unsendable || error instanceof TypeError)) throw error;
    return { status: 422, code: "invalid_request", detail: `${error.message}. It was not sent.` };
  }
}

/** The rows in order, as many in each batch as fit. */
function batches(rows: readonly Row[]): Row[][] {
  const all: Row[][] = [];
  let batch: Row[] = [];
  let size = FRAME;
  for (const row of rows) {
    if (batch.length === MOST_ROWS || (batch.length && size + 1 + row.bytes > MOST_BYTES)) {
      [batch, size] = [[], FRAME];
    }
    if (batch.push(row) === 1) all.push(batch);
    size += row.bytes + (batch.length > 1 ? 1 : 0);
  }
  return all;
}

/** One batch. Rows that the database did not take now are sent again, with the others, under the same key. */
async function send(config: Config, batch: readonly Row[], key: string, prefer: string | undefined): Promise<(ValidationResult | Problem)[]> {
  const call = call_of(batch, key, prefer);
  for (let tries = 0, waited = 0; ; tries++) {
    const results = await exchange(config, call).catch((error: unknown) => {
      if (batch.length > 1 || !(error instanceof ApiError) || error.status === 401 || OF_THE_CALLER.includes(error.code)) throw error;
      const { status, code, detail, next_step, retry_after } = error;
      return [{ status, code, detail, next_step, ...(retry_after === null ? {} : { retry_after }) }];
    });
    const seconds = backoff(tries, 1);
    const taken = results.every((row) => !is_problem(row) || row.status !== 503);
    if (taken || tries >= config.retries || waited + seconds > MOST_WAITED) return results;
    await pause(seconds * 1000);
    waited += seconds;
  }
}

function call_of(batch: readonly Row[], key: string, prefer: string | undefined): Call<(ValidationResult | Problem)[]> {
  const body = `{"claims":[${batch.map((row) => row.body).join(",")}]}`;
  // Of the whole list's key, of what is in this batch and of where it stands: the same list sent again has the same
  // keys, and two batches that hold the same are still two.
  const digest = createHash("sha256").update(`${key}\n${batch[0]!.place}\n${body}`).digest("hex");
  if (batch.length === 1) {
    // the way of `save`, which is faster
    const read = (reply: HttpReply) => [submitted(reply)];
    return { method: "POST", path: "/v1/claims", body: batch[0]!.body, key: `batch-${digest}`, prefer, statuses: VERDICTS, read };
  }
  const read_results = body_reader<{ results: (ValidationResult | Problem)[] }>("results");
  return {
    method: "POST",
    path: "/v1/claims/batch",
    body,
    key: `batch-${digest}`,
    patience: PATIENCE * batch.length,
    read: (reply) => {
      const { results } = read_results(reply);
      if (!Array.isArray(results) || results.length !== batch.length) {
        throw new OddAnswer(`${batch.length} claims were sent, and another number answered`, reply.status);
      }
      for (const row of results) {
        if (typeof row !== "object" || row === null) throw new OddAnswer("The answer has another shape: a result is no object", reply.status);
        if (!is_problem(row)) kept(row, reply.status);
        else if (typeof row.status !== "number" || typeof row.code !== "string") throw new OddAnswer("The answer has another shape: a result is neither", reply.status);
      }
      return results;
    },
  };
}
