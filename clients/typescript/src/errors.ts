/**
 * What the client throws. A verdict is never one of these: a claim that is blocked or queued is an answer. No message
 * holds the token, the text of a claim, or more of an answer than the service's own sentence.
 */

/** Base of what the client throws. Nothing may be taken as stored because of it. */
export class VouchgateError extends Error {
  /** The key that the write was sent with, null for a read. Sent again with it, the same claim is decided once. */
  idempotency_key: string | null = null;

  constructor(message: string) {
    super(message);
    this.name = new.target.name;
  }
}

/** It was not sent, because it cannot be: no JSON can hold it, or a header cannot. */
export class Unsendable extends VouchgateError {}

/** No answer came, after every try. What was sent may have been kept. */
export class Unreachable extends VouchgateError {}

/** An answer that this client does not know: a redirect, no JSON, another shape. What was sent may have been kept. */
export class OddAnswer extends VouchgateError {
  /** `status` is the HTTP status, null where there was none to read. */
  constructor(message: string, readonly status: number | null = null) {
    super(message);
  }
}

/** The service refused, with a problem document. Nothing was kept, unless `detail` says otherwise. */
export class ApiError extends VouchgateError {
  /**
   * `code` is a stable word to act on, `detail` a sentence for a human, `retry_after` the seconds after which the
   * service asks to come back; `next_step` says what an agent does now, empty where the service does not.
   */
  constructor(
    readonly status: number,
    readonly code: string,
    readonly detail: string,
    readonly retry_after: number | null = null,
    readonly next_step: string = "",
  ) {
    super(`${status} ${code}: ${detail}`);
  }
}

/** The review queue is at its limit. It is not sent again by itself: an owner has to clear the queue first. */
export class QueueFull extends ApiError {}

/** The service, the owner or this agent was stopped, or is read-only. It is not sent again by itself. */
export class Halted extends ApiError {}

/** Thrown by what applies a delivery: it will never work, so that it is not tried again. Its owner sees the message. */
export class DeadLetter extends Error {
  override readonly name: string = "DeadLetter";
}
