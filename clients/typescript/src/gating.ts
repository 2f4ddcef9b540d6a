/** Save only if it passes: what a gated function gives back, and how its arguments become a claim. */

import { passed, type SaveOptions } from "./claims.js";
import type { ValidationResult } from "./generated/api.js";
import { next_step } from "./next_step.js";

/** What a gated function gives back: the verdict, and what the function returned if it `ran`. */
export class Gated<T> {
  constructor(
    readonly verdict: ValidationResult,
    readonly ran: boolean,
    readonly value: T | undefined,
  ) {}

  /** What the agent should do now, in one sentence. */
  get next_step(): string {
    return next_step(this.verdict);
  }
}

/** What is gated, and what `save` is told of each claim. `text` is the place of the argument that is the whole claim
 * (the first is 0), `claim` makes it of all of them. */
export interface GatedOptions<Args extends unknown[]> extends SaveOptions {
  text?: number;
  claim?: (...args: Args) => string | ({ content: string } & SaveOptions);
}

const MOST_LEVELS = 32; // of lists and objects within an argument
const NO_TEXT = ["undefined", "number", "bigint", "boolean"];

/** The text of the claim, and its options. Throws TypeError where there is none: nothing is sent then. */
export function claim_from<Args extends unknown[]>(options: GatedOptions<Args>, args: Args): [string, SaveOptions] {
  const { text, claim, ...said } = options;
  if (claim !== undefined) {
    const made = claim(...args);
    if (typeof made === "string") return [made, said];
    const { content, ...more } = made;
    return [content, { ...said, ...more }];
  }
  if (text !== undefined) return [args[text] as string, said]; // `save` takes nothing else
  const texts = args.flatMap((value, place) => texts_in(value, place, MOST_LEVELS)).filter((each) => each.trim());
  if (!texts.length) throw new TypeError("the claim must be a text, and no argument holds one");
  return [texts.join("\n"), said];
}

function texts_in(value: unknown, place: number, levels: number): string[] {
  if (typeof value === "string") return [value];
  if (value === null || NO_TEXT.includes(typeof value) || value instanceof Date) return [];
  const several = value instanceof Map ? [...value].flat() : Array.isArray(value) || value instanceof Set ? [...value] : is_plain(value) ? Object.entries(value).flat() : null;
  if (several === null || !levels) {
    throw new TypeError(
      `nobody can see which texts are in argument ${place}: say with \`text\` which argument is the whole claim, or make the claim of all of them with \`claim\``,
    );
  }
  return several.flatMap((each) => texts_in(each, place, levels - 1));
}

function is_plain(value: unknown): value is object {
  const made_by: unknown = typeof value === "object" && Object.getPrototypeOf(value);
  return made_by === Object.prototype || made_by === null;
}

/** Says on an error that came out of a gated write what the gate has kept all the same. */
export function add_verdict_note(error: unknown, verdict: ValidationResult): void {
  if (!(error instanceof Error) || !passed(verdict) || !verdict.memory_id) return;
  error.message +=
    `\nvouchgate: the claim is stored as ${verdict.memory_id} (decision ${verdict.decision_id}), and what came after it failed.` +
    " Sent again with the same idempotency_key it is answered the same.";
}
