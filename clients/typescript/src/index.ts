/** The TypeScript client of Vouchgate. See README.md. */

export { error_of_problem, is_problem, type Problem } from "./answers.js";
export type { ClaimRow } from "./batches.js";
export { append_to, Client, type ClientOptions, type Recorded } from "./client.js";
export { as_sent, passed, type ClaimOptions, type SaveOptions } from "./claims.js";
export type { Delivered, Delivery } from "./deliver.js";
export { ApiError, DeadLetter, Halted, OddAnswer, QueueFull, Unreachable, Unsendable, VouchgateError } from "./errors.js";
export { Gated, type GatedOptions } from "./gating.js";
export type * from "./generated/api.js";
export { next_step } from "./next_step.js";
