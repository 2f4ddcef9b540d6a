/** The client of the HTTP API. */

import { body_reader, page, submitted, verdict, type Call, type HttpReply, type Problem } from "./answers.js";
import { save_many, type ClaimRow } from "./batches.js";
import { as_sent, checked_key, claim_of, preferred, VERDICTS, type ClaimOptions, type SaveOptions } from "./claims.js";
import { deliver, lease_call, report_call, type Delivered, type Delivery } from "./deliver.js";
import { ApiError, OddAnswer, VouchgateError } from "./errors.js";
import { as_json, configured, exchange, type Config } from "./exchange.js";
import { add_verdict_note, claim_from, copied, Gated, type GatedOptions } from "./gating.js";
import type * as api from "./generated/api.js";

type Query<Path extends keyof api.paths> = api.paths[Path] extends { get: { parameters: { query?: infer Parameters } } } ? NonNullable<Parameters> : never;

/** One page of a listing. `next` is the `after` of the following page, null on the last. */
export interface Page<T> {
  items: T[];
  next: string | null;
}

/** `timeout` is in seconds, for the beginning of an answer and for each part of it; `retries`, how often is tried again. */
export interface ClientOptions {
  timeout?: number;
  retries?: number;
}

/** What `record` is told; `kind` is "turn" unless said, `time` now. */
export type Recorded = Omit<api.RecordIn, "kind" | "time"> & Partial<Pick<api.RecordIn, "kind">> & { time?: string | Date; idempotency_key?: string };

/** A text, and in a line at its end how its record is cited: for a model, which can cite only what it reads. */
export function append_to(text: string, record: api.RecordOut): string {
  return `${text}\n(${record.cite})`;
}

/** A value as JSON, and what no JSON can hold as JavaScript shows it: a bigint, a function, what holds itself. */
function shown(value: unknown): string {
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return String(value);
  }
}

/**
 * Calls the service. `url` is where it is (else VOUCHGATE_URL, else http://127.0.0.1:8080), `token` what is shown to it
 * (else VOUCHGATE_TOKEN). What no answer came to is sent again, up to `retries` times and within a minute.
 *
 * Every method throws VouchgateError, and only for errors: Unreachable, ApiError (QueueFull, Halted), OddAnswer,
 * Unsendable. A claim that is blocked or queued is a verdict, and is given back.
 */
export class Client {
  readonly #config: Config;

  /** Throws RangeError naming what cannot be used. Nothing is asked yet. */
  constructor(url?: string, token?: string, { timeout = 30, retries = 4 }: ClientOptions = {}) {
    this.#config = configured(url, token, timeout, retries);
  }

  /**
   * Sends a claim to be kept. The same `idempotency_key` with the same claim is decided once. With `hand_over` the verdict
   * on what is stored has its `delivery`, for `deliver`, unless something waits before it.
   */
  async save(content: string, options: SaveOptions = {}): Promise<api.ValidationResult> {
    const { idempotency_key, hand_over: _, ...said } = options;
    const key = checked_key(idempotency_key);
    return this.#post("/v1/claims", claim_of(content, said), submitted, { statuses: VERDICTS, key, prefer: preferred(options) });
  }

  /** What `save` would answer now. Nothing is kept. */
  async check(content: string, options: ClaimOptions = {}): Promise<api.ValidationResult> {
    return this.#post("/v1/claims/check", claim_of(content, options), verdict);
  }

  /**
   * Sends claims in as few requests as the service takes, each a text or an object with `content` and what `save` takes;
   * `options` are those of `save`, for each claim that does not say otherwise. One result a claim, in order; a bad one
   * spoils no other: it is a Problem, and `error_of_problem` makes of it what `save` would have thrown. When this throws,
   * the same list with the error's `idempotency_key` goes on where it broke off, and doubles nothing.
   */
  async save_many(claims: readonly ClaimRow[], options: SaveOptions = {}): Promise<(api.ValidationResult | Problem)[]> {
    return save_many(this.#config, claims, options);
  }

  /** What sources that you found say of a claim together. Nothing is kept of it, and none of it vouches for a memory. */
  async corroborate(
    claim: string,
    sources: readonly api.GivenSource[],
    { as_of, window_days }: { as_of?: string | Date; window_days?: number } = {},
  ): Promise<api.Corroborated> {
    return this.#post("/v1/claims/corroborate", { claim, sources, as_of, window_days }, body_reader<api.Corroborated>("outcome", "label"));
  }

  /** Holds every claim of a document against what it cites. Nothing is kept. */
  async check_document(content: string, options: Partial<Omit<api.DocumentIn, "content">> = {}): Promise<api.ReportJson> {
    return this.#post("/v1/documents/check", { name: "document.md", ...options, content }, (reply) => {
      const found = body_reader<api.ReportJson>("passed", "status", "documents")(reply);
      if (found.passed !== (found.status === 0)) throw new OddAnswer("The report contradicts itself: `passed` is not what `status` says", reply.status);
      return found;
    });
  }

  /**
   * Puts down what a user said ("turn"; `who` said it), or a tool returned ("tool_output"; `who` is the tool's name), for
   * claims to cite. For the host's own token, of the role `recorder`: no agent records.
   */
  async record({ text, kind = "turn", who, conversation, time, user_id, idempotency_key }: Recorded): Promise<api.RecordOut> {
    const said = { text, kind, who, conversation, time, user_id };
    return this.#post("/v1/records", said, body_reader<api.RecordOut>("id", "digest", "cite"), { statuses: [201], key: checked_key(idempotency_key) });
  }

  /**
   * Wraps a tool of this name: what it returns is put down, and given back as a text with its citation at the end. What
   * could not be put down is given back without one, so that no claim can rest on it, with a warning on the console.
   */
  recorded<This, Args extends unknown[]>(
    tool: (this: This, ...args: Args) => unknown,
    about: Pick<Recorded, "who" | "conversation" | "user_id">,
  ): (this: This, ...args: Args) => Promise<string> {
    const record = this.record.bind(this);
    return async function (this: This, ...args: Args) {
      const output: unknown = (await tool.apply(this, args)) ?? null;
      const text = typeof output === "string" ? output : shown(output);
      try {
        return append_to(text, await record({ ...about, text, kind: "tool_output" }));
      } catch (error) {
        if (!(error instanceof VouchgateError)) throw error;
        console.warn(`an output of ${about.who} could not be put down: ${error.message}`);
        return text;
      }
    };
  }

  /** A page of memories, newest first; with `q`, a question or words, one of those that answer it, best first. */
  async memories(filters: Query<"/v1/memories"> = {}): Promise<Page<api.MemoryOut>> {
    return this.#get("/v1/memories", page<api.MemoryOut>, filters);
  }

  /** What rests on a source, in any spelling, and what was done since; for a reviewer, an auditor or an admin. */
  async impact(source: string, options: Omit<Query<"/v1/impact">, "source"> = {}): Promise<api.Impact> {
    return this.#get("/v1/impact", body_reader<api.Impact>(), { source, ...options });
  }

  /** One memory, whatever its status. */
  async memory(memory_id: string): Promise<api.MemoryOut> {
    return this.#get(`/v1/memories/${id(memory_id, "memory")}`, body_reader<api.MemoryOut>("id", "content"));
  }

  /** What the decision that let a memory in rests on. */
  async evidence(memory_id: string): Promise<api.EvidenceOut> {
    return this.#get(`/v1/memories/${id(memory_id, "memory")}/evidence`, body_reader<api.EvidenceOut>("claim", "sources"));
  }

  /** A decision as it was answered. */
  async decision(decision_id: string): Promise<api.ValidationResult> {
    return this.#get(`/v1/decisions/${id(decision_id, "decision")}`, verdict);
  }

  /** The proof that the log is bound to a decision; its fields are null until a checkpoint has it. */
  async receipt(decision_id: string): Promise<api.ReceiptOut> {
    const read = body_reader<api.ReceiptOut>("leaf", "salt", "proof");
    return this.#get(`/v1/receipts/${id(decision_id, "decision")}`, read, {}, [200, 202]);
  }

  /** A page of the claims that this token sent and that were queued. */
  async pending(options: Query<"/v1/claims/pending"> = {}): Promise<Page<api.OwnPending>> {
    return this.#get("/v1/claims/pending", page<api.OwnPending>, { status: "pending", ...options });
  }

  /** One of them, with what its owner asks, if anything. */
  async pending_claim(queue_id: string): Promise<api.OwnPending> {
    return this.#get(`/v1/claims/pending/${id(queue_id, "claim")}`, body_reader<api.OwnPending>("queue_id", "status"));
  }

  /** Answers what the owner asks of a claim that was sent back: the claim in other words, or with other citations. */
  async answer(queue_id: string, said: { content?: string; citations?: NonNullable<api.ClaimIn["citations"]> }): Promise<api.ValidationResult> {
    return this.#post(`/v1/claims/pending/${id(queue_id, "claim")}/answer`, said, submitted, { statuses: VERDICTS });
  }

  /** Whose this token is: its role, and the owners and sources it was given. */
  async whoami(): Promise<api.WhoOut> {
    return this.#get("/v1/whoami", body_reader<api.WhoOut>("id", "role", "owners"));
  }

  /** Takes the oldest deliveries of a sink that are due, in order, for 60 seconds. */
  async lease_deliveries(sink: string, { most = 20, user_id }: { most?: number; user_id?: string } = {}): Promise<Delivery[]> {
    return exchange(this.#config, lease_call(sink, most, user_id));
  }

  /** Says that it was applied. */
  async delivery_done(delivery: Delivery): Promise<void> {
    await exchange(this.#config, report_call(delivery));
  }

  /** Says that it was not applied, and why; with `final` it is not tried again. */
  async delivery_failed(delivery: Delivery, error: string, { final = false }: { final?: boolean } = {}): Promise<void> {
    await exchange(this.#config, report_call(delivery, { error, final }));
  }

  /** A page of deliveries and where they stand. */
  async deliveries(options: Query<"/v1/deliveries"> = {}): Promise<Page<api.DeliveryRecord>> {
    return this.#get("/v1/deliveries", page<api.DeliveryRecord>, options);
  }

  /**
   * Leases until nothing is left, and applies each delivery in order. What `apply` throws marks it as failed, to be tried
   * again later; DeadLetter as given up. `apply` may see a delivery twice: it must do no harm. With `handed`, the
   * `delivery` of a verdict that came within the last half minute, it alone is applied.
   */
  async deliver(
    sink: string,
    apply: (delivery: Delivery) => void | Promise<void>,
    { user_id, handed }: { user_id?: string; handed?: Delivery | null | undefined } = {},
  ): Promise<Delivered> {
    return deliver(this.#config, sink, apply, user_id, handed);
  }

  /** Sends a claim; `body` runs with the verdict, whatever it is, and must ask whether it is `approved`. */
  async gate<T>(content: string, options: SaveOptions, body: (verdict: api.ValidationResult) => T | Promise<T>): Promise<T> {
    const found = await this.save(content, options);
    try {
      return await body(found);
    } catch (error) {
      add_verdict_note(error, found);
      throw error;
    }
  }

  /**
   * Wraps a function that writes a memory: it runs only when the gate has stored the claim.
   *
   * The claim is every text among its arguments, a line each, lists and objects looked into; or the argument that `text`
   * names, or what `claim` makes of all of them. It must hold *everything* the function will write.
   */
  gated<This, Args extends unknown[], T>(
    write: (this: This, ...args: Args) => T | Promise<T>,
    options: GatedOptions<Args> = {},
  ): (this: This, ...args: Args) => Promise<Gated<T>> {
    if (options.text !== undefined && options.claim !== undefined) throw new TypeError("give `text` or `claim`, not both");
    const gate = this.gate.bind(this);
    return async function (this: This, ...given: Args) {
      const args = options.text === undefined ? copied(given) : given;
      const [content, said] = claim_from(options, args);
      return gate(content, said, async (found) => (as_sent(found) ? new Gated<T>(found, true, await write.apply(this, args)) : new Gated<T>(found, false, undefined)));
    };
  }

  async #get<T>(path: string, read: (reply: HttpReply) => T, parameters: object = {}, statuses = [200]): Promise<T> {
    return exchange(this.#config, { method: "GET", path, read, statuses, parameters: { ...parameters } });
  }

  async #post<T>(path: string, said: object, read: (reply: HttpReply) => T, more: Pick<Call<T>, "statuses" | "key" | "prefer"> = {}): Promise<T> {
    return exchange(this.#config, { method: "POST", path, read, body: as_json(said), ...more });
  }
}

/** An id that can stand in a path. Any other names nothing, and is answered as an unknown one would be. */
function id(value: string, what: string): string {
  if (!/^[A-Za-z0-9_-]{1,200}$/.test(value)) throw new ApiError(404, "not_found", `There is no such ${what}.`);
  return value;
}
