// Recomputes in the browser what a receipt proves: that the answer shown is what the log committed to, and that this
// entry is in the tree under a signed checkpoint. Nothing but the receipt and the public keys comes from the server.
"use strict";

(() => {
  const utf8 = new TextEncoder();
  const bytes = (base64) => Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const fromHex = (text) => Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
  const hex = (data) => [...data].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  const same = (one, other) => hex(one) === hex(other);

  async function sha256(...parts) {
    const whole = new Uint8Array(await new Blob(parts).arrayBuffer());
    return new Uint8Array(await crypto.subtle.digest("SHA-256", whole));
  }

  // RFC 9162, 2.1.3.2: the root that an entry and the hashes beside its way lead to.
  async function rootOf(hash, index, size, path) {
    let number = index, last = size - 1;
    for (const each of path) {
      if (last === 0) throw new Error("The proof is longer than the tree is high.");
      if (number % 2 === 1 || number === last) {
        hash = await sha256(Uint8Array.of(1), each, hash);
        while (number % 2 === 0 && number !== 0) { number = Math.floor(number / 2); last = Math.floor(last / 2); }
      } else {
        hash = await sha256(Uint8Array.of(1), hash, each);
      }
      number = Math.floor(number / 2);
      last = Math.floor(last / 2);
    }
    if (last !== 0) throw new Error("The proof is shorter than the tree is high.");
    return hash;
  }

  function read(proof) {
    const [head, text, signatures] = proof.split("\n\n");
    const lines = head.split("\n");
    const path = lines.filter((line, i) => i > 0 && !/^(index|extra) /.test(line)).map(bytes);
    const [origin, size, root] = text.split("\n");
    const index = Number(lines.find((line) => line.startsWith("index ")).slice(6));
    return { index, path, origin, size: Number(size), root: bytes(root), signed: `${text}\n`, signatures };
  }

  // Whether one of these keys (name+id+base64) signed; null when this browser knows no Ed25519.
  async function signedBy(note, keys) {
    for (const line of note.signatures.split("\n").filter(Boolean)) {
      const [, name, data] = line.split(" ");
      const id = hex(bytes(data).slice(0, 4));
      const known = keys.find((key) => key.startsWith(`${name}+${id}+`));
      if (name !== note.origin || known === undefined) continue;
      const raw = bytes(known.slice(`${name}+${id}+`.length)).slice(1);
      let key;
      try {
        key = await crypto.subtle.importKey("raw", raw, { name: "Ed25519" }, false, ["verify"]);
      } catch (error) {
        if (error.name === "NotSupportedError") return null;
        throw error;
      }
      if (await crypto.subtle.verify("Ed25519", key, bytes(data).slice(4), utf8.encode(note.signed))) return id;
    }
    throw new Error("No key of the log signed the checkpoint.");
  }

  async function check(decision, receipt) {
    if (receipt.proof === null) return ["unknown", "waits", "It is not under a published checkpoint yet."];
    const leaf = JSON.parse(new TextDecoder().decode(bytes(receipt.leaf)));
    if (leaf.subject !== decision) throw new Error("The receipt is of another decision.");
    const note = read(receipt.proof);
    const root = await rootOf(await sha256(Uint8Array.of(0), bytes(receipt.leaf)), note.index, note.size, note.path);
    if (!same(root, note.root)) throw new Error("The entry does not lead to the root that was signed.");
    const key = await signedBy(note, receipt.keys);
    const where = `Entry ${note.index + 1} of ${note.size}, ${key === null ? "whose signature this browser cannot check" : `signed with key ${key}`}; recomputed in this browser.`;
    if (receipt.salt === null) return ["unknown", "in the log", `${where} What it was about was erased.`];
    const [mark, digest] = leaf.commitment.split(":");
    const content = await sha256(fromHex(receipt.salt), utf8.encode(receipt.answer));
    if (!mark.endsWith("s") || hex(content) !== digest) throw new Error("The answer that is kept is not the one that was given.");
    return [key === null ? "unknown" : "good", "✓ proven", where];
  }

  async function show(line) {
    const { decision, receipt } = line.dataset;
    let told;
    try {
      if (!crypto.subtle) throw new Error("Browsers compute this over HTTPS only.");
      const answer = await fetch(receipt);
      if (!answer.ok) throw new Error(`The receipt could not be had (${answer.status}).`);
      told = await check(decision, await answer.json());
    } catch (error) {
      told = ["bad", "not proven", error.message];
    }
    const chip = document.createElement("span");
    chip.className = `chip ${told[0]}`;
    chip.textContent = told[1];
    line.prepend(chip, ` ${told[2]} `);
  }

  document.querySelectorAll("[data-receipt]").forEach(show);
})();
