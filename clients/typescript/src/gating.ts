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

/** The arguments as they are now, for what is checked and what is written: what a caller changes while the gate is asked,
 * nobody has checked. Lists and objects are copied; what else `claim` knows how to read in them is not. */
export function copied<Args extends unknown[]>(args: Args): Args {
  const done = new Map<unknown, unknown>();
  return args.map((each) => copy_of(each, done, MOST_LEVELS)) as Args;
}

function copy_of(value: unknown, done: Map<unknown, unknown>, levels: number): unknown {
  if (done.has(value)) return done.get(value);
  if (typeof value !== "object" || value === null || has_hidden(value) || !levels) return value;
  const copy = (each: unknown) => copy_of(each, done, levels - 1);
  if (Array.isArray(value)) {
    const list: unknown[] = [];
    done.set(value, list);
    for (const each of value) list.push(copy(each));
  } else if (value instanceof Map) {
    const map = new Map<unknown, unknown>();
    done.set(value, map);
    for (const [key, each] of value) map.set(copy(key), copy(each));
  } else if (value instanceof Set) {
    const set = new Set<unknown>();
    done.set(value, set);
    for (const each of value) set.add(copy(each));
  } else if (is_plain(value)) {
    const made = Object.create(Object.getPrototypeOf(value) as object | null) as object;
    done.set(value, made);
    const said = { writable: true, enumerable: true, configurable: true };
    for (const [key, each] of Object.entries(value)) Object.defineProperty(made, key, { ...said, value: copy(each) });
  }
  return done.get(value) ?? value;
}

/** Whether it has what is not shown by going through it: other properties of a list, or such as symbols name. */
function has_hidden(value: object): boolean {
  const shown = new Set<unknown>(Array.isArray(value) ? ["length", ...Array.from(value.keys(), String)] : is_plain(value) ? Object.keys(value) : []);
  return Reflect.ownKeys(value).some((key) => !shown.has(key));
}

function texts_in(value: unknown, place: number, levels: number): string[] {
  if (typeof value === "string") return [value];
  if (value === null || NO_TEXT.includes(typeof value)) return [];
  const hidden = typeof value === "object" && has_hidden(value);
  if (value instanceof Date && !hidden) return [];
  const several = value instanceof Map ? [...value].flat() : Array.isArray(value) || value instanceof Set ? [...value] : is_plain(value) ? Object.entries(value).flat() : null;
  if (several === null || hidden || !levels) {
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
