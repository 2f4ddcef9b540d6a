/** What is said of a claim, and the Idempotency-Key it is sent with. */

import { randomUUID } from "node:crypto";
import { Unsendable } from "./errors.js";
import type { ClaimIn, ValidationResult } from "./generated/api.js";

/** The statuses that a verdict comes with. */
export const VERDICTS = [200, 201, 202, 409, 422];

type Optional<T> = { [Name in keyof T]?: T[Name] | null | undefined };

/** What may be said of a claim beside its text; `fact` and `ai_synthesis`, which vouches for nothing, unless said. */
export type ClaimOptions = Optional<Omit<ClaimIn, "content" | "validity_horizon">> & { validity_horizon?: string | Date | null | undefined };

/** What may be said of a claim that is to be kept. */
export interface SaveOptions extends ClaimOptions {
  idempotency_key?: string | null | undefined;
  hand_over?: boolean | null | undefined; // of one claim: its delivery is wanted with the answer
}

/** How a service is asked for that, which passes over it where it does not know it. */
export function preferred({ hand_over }: SaveOptions): string | undefined {
  return hand_over ? "hand-over" : undefined;
}

/** The key given, or a new one. Throws Unsendable when it cannot be one. */
export function checked_key(key: string | null | undefined): string {
  if (key === undefined || key === null) return randomUUID();
  if (!/^[\x21-\x7e]([\x20-\x7e]{0,253}[\x21-\x7e])?$/.test(key)) throw new Unsendable("An Idempotency-Key is 1 to 255 visible ASCII characters");
  return key;
}

/** The body of a submit. What says nothing is left out. Throws TypeError for what is no text. */
export function claim_of(content: string, options: ClaimOptions): Record<string, unknown> {
  if (typeof content !== "string") throw new TypeError(`the claim must be a text, not ${typeof content}`);
  const said = { content, memory_type: "fact", source: "ai_synthesis", ...options };
  return Object.fromEntries(Object.entries(said).filter(([, value]) => value !== null && value !== undefined));
}

/** Whether a claim went through: stored, or let through because the gate only observed. */
export function passed(verdict: ValidationResult): boolean {
  return verdict.approved || verdict.held === false;
}

/** Whether it went through word for word. Not where personal data was masked, of which the caller's own text still has all. */
export function as_sent(verdict: ValidationResult): boolean {
  return passed(verdict) && verdict.findings.every((each) => each.code !== "personal_data_masked");
}
