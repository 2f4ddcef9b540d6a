/** What an agent should do next about a verdict, in one sentence: the words are those of the Python client. */

import { BY_CODE, BY_RULE, NOT_GRANTED, OTHER, SET_BY, SUGGESTED } from "./generated/advice.js";
import { as_sent } from "./claims.js";
import type { ValidationResult } from "./generated/api.js";

type Finding = ValidationResult["findings"][number];

const MOST_NAMED = 100; // characters of a citation in a sentence

/** One sentence for the agent, or the model behind it: what to do about this verdict. */
export function next_step(verdict: ValidationResult): string {
  const checked = verdict.decision_id === null;
  const names = { memory_id: verdict.memory_id ?? "" };
  if (verdict.held === false && !verdict.approved) return filled(checked ? OTHER.would_be_let_through : OTHER.let_through, names);
  if (verdict.outcome === "stored") {
    return filled(checked ? OTHER.would_be_stored : as_sent(verdict) ? OTHER.stored : OTHER.stored_masked, names);
  }
  const finding = set_by(verdict);
  const blocked = verdict.outcome === "blocked";
  let sentence = finding === undefined ? BY_RULE[verdict.rule] : BY_CODE[finding.code]!;
  const suggested = verdict.suggested ?? [];
  if (finding === undefined && verdict.rule === "ungrounded" && suggested.length) sentence = SUGGESTED;
  sentence ??= blocked ? OTHER.unknown_blocked : OTHER.unknown_queued; // a rule of a newer service
  const { asserted_source, source } = verdict.evidence.claim;
  if (asserted_source !== source && !blocked) sentence = sentence.replace(/\.$/, `${filled(NOT_GRANTED, { asserted: asserted_source, counts: source })}.`);
  const queue = verdict.queue_id ? ` (${verdict.queue_id})` : "";
  const nearest = verdict.conflicting_memory_id;
  return filled(sentence, {
    waits: blocked ? (checked ? "It would not be saved" : "It is not saved") : checked ? "It would wait for its owner" : `It waits for its owner${queue}`,
    queue,
    earlier: nearest ? ` (${nearest})` : "",
    memory: nearest ? `, as ${nearest}` : "",
    cited: cited(finding),
    found: suggested[0] ? `${suggested[0].citation} ${suggested[0].stance === "refutes" ? "may say otherwise" : "speaks of it"}` : "",
    successor: successor(verdict, finding),
  });
}

function filled(sentence: string, names: Record<string, string>): string {
  return sentence.replace(/\{(\w+)\}/g, (_, name: string) => names[name]!);
}

function set_by(verdict: ValidationResult): Finding | undefined {
  for (const code of SET_BY[verdict.rule] ?? []) {
    const found = verdict.findings.find((each) => each.code === code && (each.verdict !== "PASS" || code === "spoken_of"));
    if (found !== undefined) return found;
  }
  return undefined;
}

function cited(finding: Finding | undefined): string {
  if (!finding?.citation) return "what is cited";
  const shown = [...finding.citation.value].map((sign) => (sign !== " " && /[\p{C}\p{Z}]/u.test(sign) ? " " : sign));
  return shown.length <= MOST_NAMED ? shown.join("") : `${shown.slice(0, MOST_NAMED).join("")}…`;
}

function successor(verdict: ValidationResult, finding: Finding | undefined): string {
  const wanted = JSON.stringify(finding?.citation ?? null);
  for (const source of verdict.evidence.sources) {
    if (!("successor" in source) || !source.successor || JSON.stringify(source.citation) !== wanted) continue;
    return /^[\w#:./-]{1,80}$/.test(source.successor) ? ` (${source.successor})` : "";
  }
  return "";
}
