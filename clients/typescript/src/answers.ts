/** From an HTTP answer to a typed result or an error. */

import { ApiError, Halted, OddAnswer, QueueFull, Unreachable, type VouchgateError } from "./errors.js";
import { passed } from "./claims.js";
import type { ValidationResult } from "./generated/api.js";

/** An HTTP answer, read to its end. */
export interface HttpReply {
  readonly status: number;
  readonly media_type: string; // in lower case, without parameters
  readonly body: string;
  readonly retry_after: number | null; // seconds
}

/** No answer: what happened, in words without anything that was sent. `passing`: another try may end otherwise. */
export interface NoReply {
  readonly what: string;
  readonly passing: boolean;
}

/** One request, and how to read the answer to it. `read` throws OddAnswer for what it cannot read. */
export interface Call<T> {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly read: (reply: HttpReply) => T;
  readonly statuses?: readonly number[]; // those whose body `read` knows; 200 unless said
  readonly parameters?: Readonly<Record<string, unknown>>;
  readonly body?: string;
  readonly key?: string; // the Idempotency-Key
  readonly prefer?: string | undefined; // as in RFC 7240: what an older service does not know, it passes over
  readonly patience?: number; // seconds that an answer may take beyond the client's time-out
}

/** Why one row of a batch was not decided; the other rows were. */
export interface Problem {
  readonly status: number;
  readonly code: string; // a stable word
  readonly detail: string; // a sentence
  readonly next_step?: string; // what an agent does now
  readonly retry_after?: number; // seconds
}

const MOST_SHOWN = 500; // characters of the service's sentence in an error
const KINDS: Readonly<Record<string, typeof ApiError>> = { queue_full: QueueFull, read_only: Halted, stopped: Halted };

/** What `save` throws for a row of `save_many` that is a Problem. */
export function error_of_problem(problem: Problem): ApiError {
  const [code, detail, step] = [problem.code, problem.detail, problem.next_step ?? ""].map((text) => text.slice(0, MOST_SHOWN));
  return new (KINDS[problem.code] ?? ApiError)(problem.status, code!, detail!, problem.retry_after ?? null, step);
}

/** Whether a row of `save_many` is a Problem, and no verdict. */
export function is_problem(row: ValidationResult | Problem): row is Problem {
  return !("outcome" in row);
}

/** Reads a body with these fields. What this client does not know is left in it: a newer service may add some. */
export function body_reader<T extends object>(...fields: (keyof T & string)[]): (reply: HttpReply) => T {
  return (reply) => {
    const found = parsed(reply);
    const lacking = fields.find((name) => !(name in found));
    if (lacking !== undefined) throw new OddAnswer(`The answer has another shape: ${lacking} is missing`, reply.status);
    return found as T;
  };
}

function parsed(reply: HttpReply): object {
  let found: unknown;
  try {
    found = JSON.parse(reply.body);
  } catch {
    throw new OddAnswer("The answer has another shape: the body is no JSON", reply.status);
  }
  if (typeof found !== "object" || found === null) throw new OddAnswer("The answer has another shape: the body is no object", reply.status);
  return found;
}

/** A listing: its items are a list, and it says what comes next. */
export function page<T>(reply: HttpReply): { items: T[]; next: string | null } {
  const found = body_reader<{ items: T[]; next: string | null }>("items", "next")(reply);
  if (!Array.isArray(found.items)) throw new OddAnswer("The answer has another shape: items is no list", reply.status);
  return found;
}

const OUTCOMES: readonly string[] = ["stored", "queued", "blocked"];
const read_verdict = body_reader<ValidationResult>("outcome", "approved", "rule", "reason", "findings", "evidence", "decision_id");

/** A verdict. One that contradicts itself is an OddAnswer: nobody may take it for a yes. */
export function verdict(reply: HttpReply): ValidationResult {
  return require_agreement(read_verdict(reply), reply.status);
}

/** The verdict on a claim that was sent to be kept: the status must say the same, and what was kept has an id. */
export function submitted(reply: HttpReply): ValidationResult {
  const found = kept(read_verdict(reply), reply.status);
  if ((found.outcome === "stored") === (reply.status === 200 || reply.status === 201)) return found;
  throw new OddAnswer(`Status ${reply.status} does not go with a claim that is ${found.outcome}`, reply.status);
}

/** The verdict, if `approved` and `outcome` say the same. Throws OddAnswer, also for an outcome nobody knows. */
function require_agreement(found: ValidationResult, status: number): ValidationResult {
  if (!OUTCOMES.includes(found.outcome)) throw new OddAnswer("The verdict has an outcome that this client does not know", status);
  if (found.approved !== (found.outcome === "stored")) throw new OddAnswer("The verdict contradicts itself: `approved` is not what `outcome` says", status);
  return found;
}

/** The verdict, if it agrees, has the id of its decision, and what went through that of its memory. Throws OddAnswer. */
export function kept(found: ValidationResult, status: number): ValidationResult {
  require_agreement(found, status);
  if (!found.decision_id) throw new OddAnswer("The verdict names no decision, as if the claim had only been checked", status);
  if (passed(found) && !found.memory_id) throw new OddAnswer("The verdict says that it went through, and names no memory", status);
  return found;
}

/** The error of a problem document; null when it is none. */
export function problem_of(reply: HttpReply): ApiError | null {
  if (reply.media_type !== "application/problem+json") return null;
  try {
    const found = parsed(reply) as Problem;
    if (typeof found.code !== "string" || typeof found.detail !== "string") return null;
    const retry_after = reply.retry_after ?? found.retry_after;
    return error_of_problem({ ...found, status: reply.status, ...(retry_after === undefined ? {} : { retry_after }) });
  } catch {
    return null;
  }
}

/** The error that an answer without a result is. */
export function error_of(reply: HttpReply | NoReply): VouchgateError {
  if ("what" in reply) return reply.passing ? new Unreachable(reply.what) : new OddAnswer(reply.what);
  const { status } = reply;
  if (status >= 300 && status < 400) return new OddAnswer(`The address answered with a redirect (${status}); give the address it leads to`, status);
  const problem = problem_of(reply);
  if (problem !== null) return problem;
  if ([502, 503, 504].includes(status)) return new Unreachable(`Something in front of the service answered ${status}`);
  return new OddAnswer(`Status ${status} with the media type '${reply.media_type.slice(0, 80) || "none"}' is no answer of the service`, status);
}
