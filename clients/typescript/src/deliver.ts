/** Applying what was delivered, in order, until nothing is left. */

import { body_reader, type Call } from "./answers.js";
import { ApiError, DeadLetter } from "./errors.js";
import { as_json, exchange, type Config } from "./exchange.js";
import type { Delivery } from "./generated/api.js";

export type { Delivery };

const BEGIN_WITHIN = 30; // seconds: half of a lease. Who applies for longer than the rest is overtaken by the next holder
const MOST_AT_ONCE = 20;
const MOST_ERROR = 500; // characters of an error that the service keeps

/** How many deliveries were applied, failed (and are tried again later), and were given up. */
export interface Delivered {
  done: number;
  failed: number;
  dead: number;
}

export function lease_call(sink: string, most: number, user_id: string | null | undefined): Call<Delivery[]> {
  const read = body_reader<{ deliveries: Delivery[] }>("deliveries");
  const body = as_json({ sink, most, ...(user_id == null ? {} : { user_id }) });
  return { method: "POST", path: "/v1/deliveries/lease", body, read: (reply) => read(reply).deliveries };
}

/** Says that it was applied, or what failed. Its answer says whether it was given up. */
export function report_call(delivery: Delivery, failed?: { error: string; final: boolean }): Call<boolean> {
  const read = body_reader<{ state: string }>("state");
  const path = `/v1/deliveries/${encodeURIComponent(delivery.id)}/${failed ? "failed" : "done"}`;
  return { method: "POST", path, body: as_json({ lease: delivery.lease, ...failed }), read: (reply) => read(reply).state === "dead" };
}

/** Leases until nothing is left, and applies each delivery in order; or only what was `handed` over. See `Client.deliver`. */
export async function deliver(
  config: Config,
  sink: string,
  apply: (delivery: Delivery) => void | Promise<void>,
  user_id: string | null | undefined,
  handed: Delivery | null | undefined,
): Promise<Delivered> {
  const counted = { done: 0, failed: 0, dead: 0 };
  const clock = () => performance.now() / 1000;
  let most = 2; // few at first: nobody knows yet how long `apply` takes
  let slowest = 0;
  let more = true;
  while (more) {
    const leased_at = clock();
    const leased = handed ? [handed] : await exchange(config, lease_call(sink, most, user_id));
    let heard = false; // whether the service took anything of what was told about this lease
    let ended = leased.length < most; // one that is not full has all that is due
    const held_up = new Set<string>();
    const since = new Map<string, number>(); // every report renews the lease of its owner's deliveries
    for (const delivery of leased) {
      const [owner, begun] = [delivery.owner_id, clock()];
      if (held_up.has(owner) || begun - (since.get(owner) ?? leased_at) > BEGIN_WITHIN) {
        ended &&= held_up.has(owner);
        continue;
      }
      let error: unknown;
      let thrown = false;
      try {
        await apply(delivery);
      } catch (caught) {
        [error, thrown] = [caught, true];
      }
      slowest = Math.max(slowest, clock() - begun);
      const told = await report(config, delivery, thrown, error);
      if (told !== "lost") {
        counted[told] += 1;
        heard = true;
        since.set(owner, clock());
      }
      if (told === "failed" || told === "lost") held_up.add(owner);
    }
    more = heard && !ended;
    most = slowest ? Math.max(1, Math.min(MOST_AT_ONCE, Math.floor(BEGIN_WITHIN / slowest))) : MOST_AT_ONCE;
  }
  return counted;
}

/** What became of a delivery. `lost`: the lease has ended, and somebody else may have it now. */
async function report(config: Config, delivery: Delivery, thrown: boolean, error: unknown): Promise<"done" | "failed" | "dead" | "lost"> {
  try {
    const given_up = await exchange(config, report_call(delivery, thrown ? { error: described(error), final: error instanceof DeadLetter } : undefined));
    return thrown ? (given_up ? "dead" : "failed") : "done";
  } catch (refused) {
    if (refused instanceof ApiError && (refused.status === 404 || refused.status === 409)) return "lost";
    throw refused;
  }
}

/** What to show the owner of an error: a dead letter's own sentence, else the kind and the message. */
function described(error: unknown): string {
  const said = error instanceof DeadLetter ? error.message : String(error);
  return said.toWellFormed().replace(/[\p{C}\p{Z}]/gu, " ").trim().slice(0, MOST_ERROR) || "Error";
}
