/** Where the service is, how one request is sent, and when it is sent again. */

import { setTimeout as pause } from "node:timers/promises";
import { error_of, problem_of, type Call, type HttpReply, type NoReply } from "./answers.js";
import { Halted, QueueFull, Unsendable, VouchgateError } from "./errors.js";

const DEFAULT_URL = "http://127.0.0.1:8080";
const FIRST_WAIT = 0.25; // seconds; doubled for each try
const LONGEST_WAIT = 8;
export const MOST_WAITED = 60; // seconds waited between the tries of one request, in all
const LONGEST_TIMER = 2 ** 31 - 1; // milliseconds; one that is longer would end at once

/** How to reach the service. */
export interface Config {
  readonly url: string;
  readonly token: string;
  readonly timeout: number; // seconds
  readonly retries: number;
}

/** What was given, else what VOUCHGATE_URL and VOUCHGATE_TOKEN say. Throws RangeError, never showing the token. */
export function configured(url: string | undefined, token: string | undefined, timeout: number, retries: number): Config {
  const shown = token || process.env["VOUCHGATE_TOKEN"];
  if (!shown) {
    throw new RangeError("a token is needed: give `token`, or set VOUCHGATE_TOKEN; vouchgate token create --role agent --owner ID makes one");
  }
  if (!/^[\x21-\x7e]+$/.test(shown)) throw new RangeError("the token holds characters that no token has: white space, or letters beyond ASCII");
  if (!(timeout > 0)) throw new RangeError("timeout must be over 0 seconds");
  if (!(retries >= 0)) throw new RangeError("retries must be 0 or more");
  return { url: checked_url(url || process.env["VOUCHGATE_URL"] || DEFAULT_URL), token: shown, timeout, retries };
}

function checked_url(url: string): string {
  if (!url.includes("://")) throw new RangeError(`the URL must begin with http:// or https://, as in http://${url.slice(0, 200)}`);
  const parts = URL.canParse(url) ? new URL(url) : null;
  // A name and password in a URL would take the place of the token, and end up in logs.
  if (!parts || !/^https?:$/.test(parts.protocol) || parts.username || parts.password || /[?#@]/.test(url)) {
    throw new RangeError("the URL must be like https://gate.example.org: no user name, no query");
  }
  return url.replace(/\/+$/, "");
}

/** JSON text. Throws Unsendable for what none can hold, without telling what it was. */
export function as_json(value: unknown): string {
  try {
    return JSON.stringify(value, writable);
  } catch (error) {
    if (error instanceof Unsendable) throw error;
    const what = error instanceof RangeError ? "is nested too deeply" : "cannot be written as JSON";
    throw new Unsendable(`What is to be sent ${what}`);
  }
}

/** JSON.stringify would leave these out, or write something else in their place. */
function writable(this: Record<string, unknown>, name: string, value: unknown): unknown {
  if (!name.isWellFormed() || (typeof value === "string" && !value.isWellFormed())) {
    throw new Unsendable("The text holds half of a surrogate pair, which is no character");
  }
  const lost =
    (typeof value === "number" && !Number.isFinite(value)) ||
    ["function", "symbol", "bigint"].includes(typeof value) ||
    (value === undefined && Array.isArray(this)) ||
    (value === null && this[name] !== null) || // a Date that is none
    value instanceof Map ||
    value instanceof Set;
  if (lost) throw new Unsendable("What is to be sent cannot be written as JSON");
  return value;
}

/** Sends a request until there is an answer that counts. Throws VouchgateError with the key it was sent with. */
export async function exchange<T>(config: Config, call: Call<T>): Promise<T> {
  for (let tries = 0, waited = 0; ; tries++) {
    const reply = await send(config, call);
    const seconds = wait_before(reply, tries, Math.random());
    if (seconds !== null && tries < config.retries && waited + seconds <= MOST_WAITED) {
      await pause(seconds * 1000);
      waited += seconds;
      continue;
    }
    try {
      const answered = !("what" in reply) && reply.media_type === "application/json" && (call.statuses ?? [200]).includes(reply.status);
      if (answered) return call.read(reply);
      throw error_of(reply);
    } catch (error) {
      if (error instanceof VouchgateError) error.idempotency_key = call.key ?? null;
      throw error;
    }
  }
}

/**
 * Seconds to wait before another try, null when it would not end otherwise. `share`, 0 to 1, spreads the clients of a
 * service that was down. Tried again: what no answer came to, 502, 503, 504, and 429; but for a full queue, which only
 * its owner can clear, and what somebody stopped or made read-only.
 */
export function wait_before(reply: HttpReply | NoReply, tries: number, share: number): number | null {
  if ("what" in reply) return reply.passing ? backoff(tries, share) : null;
  const problem = problem_of(reply);
  if (problem instanceof QueueFull || problem instanceof Halted) return null;
  if (![429, 502, 503, 504].includes(reply.status)) return null;
  return Math.max(backoff(tries, share), reply.retry_after ?? 0);
}

/** Seconds: twice as long for each try before, and between half and all of that. */
export function backoff(tries: number, share: number): number {
  return Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** Math.min(tries, 16)) * (0.5 + share / 2);
}

async function send(config: Config, call: Call<unknown>): Promise<HttpReply | NoReply> {
  const late = new AbortController();
  const milliseconds = Math.min(LONGEST_TIMER, (config.timeout + (call.patience ?? 0)) * 1000);
  let timer = setTimeout(() => late.abort(), milliseconds); // for the beginning of an answer, and for each part of it
  try {
    const response = await fetch(config.url + call.path + query(call), {
      method: call.method,
      headers: {
        Authorization: `Bearer ${config.token}`,
        "User-Agent": "vouchgate-client-typescript",
        Accept: "application/json, application/problem+json",
        ...(call.body === undefined ? {} : { "Content-Type": "application/json" }),
        ...(call.key === undefined ? {} : { "Idempotency-Key": call.key }),
        ...(call.prefer === undefined ? {} : { Prefer: call.prefer }),
      },
      body: call.body ?? null,
      redirect: "manual", // one that is followed would carry the claim elsewhere
      signal: late.signal,
    });
    const parts: Uint8Array[] = [];
    for await (const part of response.body ?? []) {
      parts.push(part);
      clearTimeout(timer);
      timer = setTimeout(() => late.abort(), milliseconds);
    }
    const media_type = (response.headers.get("content-type") ?? "").split(";")[0]!.trim().toLowerCase();
    const body = new TextDecoder("utf-8", { fatal: true }).decode(Buffer.concat(parts));
    return { status: response.status, media_type, body, retry_after: seconds_in(response.headers.get("retry-after")) };
  } catch (error) {
    if (late.signal.aborted) return { what: "No answer came in time", passing: true };
    if (!(error instanceof TypeError)) throw error; // fetch tells of the network by this kind
    return describe(error);
  } finally {
    clearTimeout(timer);
  }
}

/** What happened to a request without an answer. The error itself is not kept. */
function describe(error: TypeError): NoReply {
  const { code } = { ...error, ...(error.cause as object | undefined) } as { code?: string };
  if (/^(Z_|ERR_ENCODING)/.test(code ?? "")) return { what: "The answer cannot be read", passing: false };
  const broken = /^(UND_ERR_SOCKET|ECONNRESET|EPIPE)$/.test(code ?? "") || error.message === "terminated";
  const nobody = "Nothing answers at the service's address (VOUCHGATE_URL, or the one given), or its certificate does not hold";
  return { what: broken ? "The connection broke off" : nobody, passing: true };
}

function query(call: Call<unknown>): string {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(call.parameters ?? {})) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one === undefined || one === null) continue;
      as_json(one); // throws for what no request can hold
      given.append(name, String(one));
    }
  }
  return given.size ? `?${given}` : "";
}

/** Retry-After in seconds. As a date it is left out: the clocks of two machines differ by more than most waits. */
function seconds_in(retry_after: string | null): number | null {
  return retry_after !== null && /^[0-9]{1,6}$/.test(retry_after.trim()) ? Number(retry_after) : null;
}
