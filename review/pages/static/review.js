// The keyboard, acts without a reload, and the live queue. Everything here also works as plain links and forms.
// One file, though it is long: there is no build, and a second one would be one more thing to wait for.
"use strict";

(() => {
  const one = (selector, within = document) => within.querySelector(selector);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const { page, csrf } = document.body.dataset;
  const { owner } = document.documentElement.dataset; // of several, the one whose page this is, whatever another tab shows
  const live = one("#live");

  function announce(text) {
    live.textContent = "";
    setTimeout(() => { live.textContent = text; }, 50); // a change of the same words is heard, too
  }

  function element(name, attributes = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }

  // An address of ours, of the owner whose page this is.
  function own(address) {
    const found = new URL(address, location);
    if (owner) found.searchParams.set("owner", owner);
    return found.href;
  }

  // --- the queue: which row is chosen -------------------------------------------------------------------------

  const list = () => one("#queue");
  const rows = () => all("#queue > .row:not(.gone, .leaving)");
  const chosen = () => one('#queue > .row[aria-current="true"]');

  function choose(row, { focus = true, scroll = true } = {}) {
    const before = chosen();
    if (before && before !== row) {
      before.removeAttribute("aria-current");
      if (before.classList.contains("gone")) before.remove();
    }
    if (!row) return;
    row.setAttribute("aria-current", "true");
    if (focus) one("a.open", row).focus({ preventScroll: true });
    if (scroll) list().style.paddingTop = "";
    if (scroll && onCard()) scrollTo(0, 0);
    else if (scroll) row.scrollIntoView({ block: "nearest" });
    show(row);
    offerGroups();
  }

  // --- the pane beside the list: what the page of the chosen claim says -----------------------------------------

  const GLANCE = 300; // milliseconds for which something must have been in sight to have been seen
  const pane = () => one("#pane");
  const onCard = () => matchMedia("(max-width: 48rem)").matches; // one claim at a time, as on a phone
  const panes = new Map(); // by item and version: what was read, or is being read
  let glance = 0; // the timer after which what is shown counts as seen

  const keyOf = (row) => `${row.dataset.id}:${row.dataset.version}`;

  async function read(row, anew = false) {
    const key = keyOf(row);
    let kept = panes.get(key);
    if (!kept || anew) {
      if (panes.size > 200) panes.clear();
      const query = new URLSearchParams(location.search);
      query.delete("done");
      kept = { html: kept?.html ?? null, stale: false };
      kept.ready = fetch(own(`/review/items/${row.dataset.id}/pane?${query}`), { headers: { Accept: "text/html" } })
        .then(async (answer) => { if (answer.ok && !answer.redirected) kept.html = await answer.text(); })
        .catch(() => {}) // it can be opened on its own page, and is asked for again
        .then(() => { if (kept.html === null) panes.delete(key); });
      panes.set(key, kept);
    }
    await kept.ready;
    return kept.html;
  }

  function show(row) {
    if (!pane()) return;
    const key = keyOf(row);
    if (!shows(row)) unsee();
    const kept = panes.get(key);
    const had = kept?.html ?? null; // now: what is being read is put into the same object
    if (had) put(row, had);
    else pane().classList.add("waiting");
    if (!had || kept.stale) {
      read(row, kept?.stale).then((html) => {
        if (chosen() !== row || keyOf(row) !== key) return;
        if (html === null) fill((pane_) => pane_.replaceChildren(element("p", {}, element("a", { href: one("a.open", row).href }, "Open this claim"))));
        else if (html !== had && !(shows(row) && pane().contains(document.activeElement))) put(row, html);
      });
    }
    const every = rows();
    for (const next of every.slice(every.indexOf(row) + 1, every.indexOf(row) + 3)) read(next);
  }

  function unsee() {
    clearTimeout(glance);
    glance = 0;
    pane().classList.remove("seen");
  }

  // Whoever went into the pane before its answer came stays in it, before the first of its controls: the one that had
  // the focus was of another claim.
  function fill(how) {
    const within = pane().contains(document.activeElement);
    how(pane());
    pane().scrollTop = 0;
    if (within) pane().focus({ preventScroll: true });
  }

  function put(row, html) {
    pane().classList.remove("waiting");
    if (!shows(row)) unsee();
    const as = shownAs(row);
    glance ||= setTimeout(() => { pane().classList.add("seen"); sights.add(as); opened(row.dataset.id); }, GLANCE);
    if (pane().dataset.shows === `${shownAs(row)}${html}`) return;
    pane().dataset.shows = `${shownAs(row)}${html}`;
    fill((pane_) => { pane_.innerHTML = html; }); // of our own server, which escaped what is of others
    members(row);
  }

  const sights = new Set(); // what was in sight beside the list, as `shownAs` names it
  let aimed = null; // the row that was chosen, and so in sight, when a key or a button went down

  // Whether all of a row's text was before the reader: in its line, or beside the list.
  function inSight(row) {
    const text = one("a.open", row);
    const line = text.clientHeight > 0 && text.scrollHeight <= text.clientHeight + 1;
    return (line && !("cut" in row.dataset) && !("named" in row.dataset))
      || sights.has(shownAs(row)) || (row === aimed && shows(row));
  }

  const told = new Set(); // ids of claims that were in sight, of which the server knows
  function opened(id) {
    if (document.hidden) return;
    if (!told.has(id)) fetch(`/review/items/${id}/opened`, { method: "POST", body: new URLSearchParams({ csrf }) }).catch(() => {});
    told.add(id);
  }

  const shownAs = (row) => `${keyOf(row)} ${row.dataset.named ?? ""} `;
  const shows = (row) => Boolean(pane()?.dataset.shows?.startsWith(shownAs(row)));

  // Of several that are one row, each, ticked: who unticks one leaves it for later. It stays so until its row is gone.
  const unticked = new Set(); // ids
  const idOf = (item) => item.split(":")[0];
  function members(row) {
    const from = one(".group ol", row);
    const to = one(".members", pane());
    if (!from || !to) return;
    const listed = from.cloneNode(true);
    all("input", listed).forEach((box) => {
      box.checked = !unticked.has(idOf(box.value));
      box.addEventListener("change", () => { unticked[box.checked ? "delete" : "add"](idOf(box.value)); ticked(); });
      ["name", "form"].forEach((name) => box.removeAttribute(name));
    });
    const words = row.dataset.likeness === "wordings"
      ? "Approving stores the first that is ticked; the others are rejected as known in other words."
      : "Approving or rejecting is for all that are ticked; where none is, rejecting is for all of them.";
    to.replaceChildren(element("p", { class: "small soft" }, words), listed);
    one("[data-asks]", pane())?.removeAttribute("data-asks"); // all that are ticked are beside what is stored
    one("[data-supersede=true]", pane())?.remove();
    const keeps = one("[data-supersede=false]", pane());
    if (keeps) { delete keeps.dataset.supersede; one("kbd", keeps).textContent = "a"; }
    tally(row);
  }

  // Has the buttons of a row say how many they approve.
  function tally(row) {
    const words = row.dataset.likeness === "wordings" ? "Approve one" : `Approve ${named(row).length}`;
    const beside = shows(row) ? one("[data-act=approve] .word", pane()) : null;
    for (const button of [one(".acts .approve", row), beside]) if (button) button.textContent = words;
  }

  // The items of a row with their versions: of several those that are ticked.
  const itemsOf = (row) => row.dataset.named?.split(",") ?? [keyOf(row)];
  const named = (row) => itemsOf(row).filter((each) => !("named" in row.dataset) || !unticked.has(idOf(each)));
  const holder = (id) => rows().find((row) => itemsOf(row).some((each) => each.startsWith(`${id}:`)));

  function step(by) {
    const row = chosen();
    const every = all("#queue > .row");
    let at = row ? every.indexOf(row) + by : by > 0 ? 0 : every.length - 1;
    while (every[at]?.matches(".gone, .leaving")) at += by;
    if (every[at]) choose(every[at]);
  }

  // --- acts ---------------------------------------------------------------------------------------------------

  // Sends one act and returns its answer {waiting, results: [{id, outcome, message, done, undo_version}]}, or null.
  async function send(fields) {
    const body = new URLSearchParams({ csrf });
    for (const [name, value] of Object.entries(fields)) {
      for (const each of [value].flat()) if (each !== null && each !== undefined) body.append(name, each);
    }
    try {
      const answer = await fetch("/review/act", { method: "POST", body, headers: { Accept: "application/json" } });
      if (answer.status === 401) {
        location.assign("/review/sign-in?next=" + encodeURIComponent(location.pathname + location.search));
        return null;
      }
      const json = (answer.headers.get("Content-Type") || "").startsWith("application/json");
      if (json) return await answer.json();
      const why = one("main > h1 + p", parsed(await answer.text()))?.textContent;
      say(`That did not work: ${why || `the service answered ${answer.status}. Look again before you repeat it.`}`, "bad");
    } catch {
      say("The service cannot be reached, and this may have been done or not. Look again before you repeat it.", "bad");
    }
    return null;
  }

  const parsed = (text) => new DOMParser().parseFromString(text, "text/html");

  // A message that stays in sight wherever the page is scrolled to, with the way back from what it tells: `undo` names
  // the items to be taken back.
  function say(text, kind = "", undo = []) {
    all("main > .said.toast").forEach((old) => old.remove());
    const bar = element("div", { class: `said toast by-script ${kind}` }, element("p", {}, text));
    if (undo.length) {
      const button = element("button", { type: "button" }, "Undo ", element("kbd", { "aria-hidden": "true" }, "u"));
      button.addEventListener("click", () => takeBack(`undo:${undo}`));
      bar.append(button);
    }
    const close = element("button", { type: "button", class: "quiet", "aria-label": "Close" }, "×");
    close.addEventListener("click", () => bar.remove());
    bar.append(close);
    one("main").prepend(bar);
    announce(text);
  }

  // Acts, and tells what came of it, with `rest`: what it was not done to. Whether it was done to all that were named.
  async function act(fields, left = null, rest = "") {
    // A single row is left at once: the next key is for the next row, however long the answer takes.
    if (left) leave(left);
    const answer = await send(fields);
    left?.classList.remove("leaving");
    if (!answer) return false;
    overtaken = true;
    panes.forEach((kept) => { kept.stale = true; }); // what was stored may stand against what waits
    const current = chosen();
    const after = current && rows().slice(rows().indexOf(current) + 1).find((row) => !answer.results.some((r) => r.id === row.dataset.id));
    let done = 0;
    // The last first: it may have replaced what one before it stored.
    const back = answer.results.filter((result) => result.undo_version).map((result) => `${result.id}:${result.undo_version}`).reverse();
    for (const result of answer.results) {
      const row = document.getElementById(result.id);
      if (result.done) {
        done += 1;
        if (row) row.remove();
      } else if (row) {
        outcome(row, result.message);
        one("input[name=row]", row).checked = false;
        if (result.asks) row.dataset.conflict = "";
        if (row === chosen()) show(row);
      }
    }
    setWaiting(answer.waiting);
    const [first] = answer.results;
    const failed = answer.results.find((result) => !result.done);
    const some = back.length && back.length < done ? `. ${back.length} of them can be taken back` : "";
    if (!left) {
      showResults(answer);
      say(answer.summary + some + (rest ? `. ${rest}` : ""), failed || rest ? "doubt" : "", back);
    } else if (answer.results.length > 1) {
      say(`${answer.summary}${some}.${failed ? ` ${failed.message}` : ""}`, failed ? "doubt" : "", back);
    } else if (first) {
      say(first.message, first.done ? "" : "bad", back);
    }
    if (current && !current.isConnected) choose(after || rows().at(-1) || null);
    ticked();
    refreshSoon(0);
    return !failed;
  }

  function outcome(row, words) {
    one(".outcome", row)?.remove();
    row.append(element("p", { class: "outcome", role: "alert" }, words));
  }

  function leave(row) {
    const every = rows();
    const at = every.indexOf(row);
    row.classList.add("leaving");
    if (row === chosen() && every.length > 1) choose(every[at + 1] || every[at - 1]);
  }

  function showResults(answer) {
    one("#results")?.remove();
    const shown = element("ol", { id: "results", class: "card list", "aria-label": "What came of each" });
    for (const result of answer.results) {
      shown.append(element("li", { "data-result": result.outcome }, element("b", {}, result.outcome), " ", result.message));
    }
    (one("#bulk") || one("section[aria-labelledby=waiting]")).append(shown);
  }

  // What is named, or else what this person did last, as the service knows it: here, before the page was loaded, or in
  // another window.
  async function takeBack(what = "undo-last") {
    const answer = await send({ do: what });
    if (!answer) return;
    overtaken = true;
    panes.forEach((kept) => { kept.stale = true; });
    const [last] = answer.results;
    const first = answer.results.find((result) => !result.done) || last;
    const failed = first && !first.done;
    if (!first) say(`${answer.summary}`, "doubt");
    else say(answer.results.length > 1 ? `${answer.summary}${failed ? `. ${first.message}` : ""}` : first.message, failed ? "bad" : "");
    setWaiting(answer.waiting);
    one("#results")?.remove();
    await refresh();
    const row = last && holder(last.id);
    if (row) choose(row);
  }

  // The dialog's answer: the value of the button that closed it, or null. `typed` is what its fields hold at first.
  function ask(dialog, claim, typed = {}) {
    const text = one(".claim", dialog);
    text.replaceChildren(...[...claim.childNodes].map((node) => node.cloneNode(true)));
    one("form", dialog).reset();
    one(".said", dialog)?.remove();
    all("input", dialog).forEach((field) => {
      if (field.type === "radio") field.checked = field.value === typed[field.name];
      else field.value = typed[field.name] ?? "";
    });
    dialog.returnValue = "";
    return new Promise((resolve) => {
      dialog.addEventListener("close", () => resolve(dialog.returnValue || null), { once: true });
      dialog.showModal();
    });
  }

  // Whether the row can still be acted on.
  function waits(row) {
    const gone = row?.matches(".gone, .leaving");
    if (gone) announce("This claim does not wait any more.");
    return Boolean(row) && !gone;
  }

  const REASON = "reason of "; // where what was typed into the dialog is kept, by claim

  const overOf = (row) => (shows(row) ? one("[data-over]", pane())?.dataset.over : null);

  // What stands against it, or is like it, is looked at before it is stored beside that.
  async function approve(row, supersede = null) {
    if (!waits(row)) return undefined;
    if ("cut" in row.dataset) { location.assign(one("a.open", row).href); return undefined; } // there is more of it
    if ("removal" in row.dataset) return remove(row);
    const key = keyOf(row);
    const seen = shows(row) && pane().classList.contains("seen");
    const several = "named" in row.dataset;
    if (supersede && shows(row)) return act({ do: `approve:${key}`, supersede, over: overOf(row) }, row);
    if (!("conflict" in row.dataset)) {
      const sighted = inSight(row); // or else another one is still beside the list
      const ready = panes.get(key)?.html;
      if (!ready && sighted) leave(row);
      else if (!ready) outcome(row, "Read all of it beside the list, then approve it.");
      const read_ = ready ?? (await read(row));
      row.classList.remove("leaving");
      const found = parsed(read_ ?? "");
      const near = one("[data-near]", found);
      if (one("[data-asks]", found) && !several) row.dataset.conflict = "";
      else if (((near || several) && !seen) || !sighted) {
        if (sighted) choose(row);
        const what = several ? "Look at what is alike" : near ? "Look at what it is like" : "Read all of it beside the list";
        outcome(row, `${what}, then approve it.`);
        return undefined;
      }
    }
    if (!("conflict" in row.dataset)) {
      const rows_ = named(row);
      if (!rows_.length) { say("Nothing is ticked.", "doubt"); return undefined; }
      return act({ do: `${row.dataset.likeness === "wordings" ? "keep" : "approve"}:${rows_}` }, row);
    }
    if (row !== chosen()) choose(row);
    if (!panes.get(key)?.html) await read(row); // else at once: the next key is the answer
    show(row);
    const dialog = one("#conflict-dialog");
    const diff = all(".earlier .versus, .near .versus", pane()).slice(0, 1).map((node) => node.cloneNode(true));
    one("#conflict-diff").replaceChildren(...diff);
    one("h2", dialog).textContent = overOf(row) ? "It says nearly what is stored" : "It conflicts with an earlier claim";
    const answer = await ask(dialog, one("a.open", row));
    if (answer === "look") location.assign(one("a.open", row).href);
    else if (answer) await act({ do: `approve:${key}`, supersede: answer, over: overOf(row) }, row);
    return undefined;
  }

  // What cannot be taken back is asked first.
  async function remove(row) {
    const key = keyOf(row);
    if (row !== chosen()) choose(row);
    const html = panes.get(key)?.html ?? (await read(row)); // at once where it is known: the next key is the answer
    one("#removal-effect").textContent = one(".effect", parsed(html ?? ""))?.textContent || "This cannot be taken back.";
    const answer = await ask(one("#removal-dialog"), one("a.open", row));
    if (answer === "look") location.assign(one("a.open", row).href);
    else if (answer) await act({ do: `approve:${key}` }, row);
  }

  async function reject(row) {
    if (!waits(row)) return;
    const rows_ = named(row).length ? named(row) : itemsOf(row); // what was left of others; the dialog says how many
    const dialog = one("#reject-dialog");
    one("h2", dialog).textContent = rows_.length > 1 ? `Reject all ${rows_.length}` : "Reject";
    const kept = `${REASON}${row.dataset.id}`;
    const answer = await ask(dialog, one("a.open", row), JSON.parse(sessionStorage.getItem(kept) ?? "{}"));
    sessionStorage.removeItem(kept);
    if (answer !== "ok") return;
    const canned = one("input[name=canned]:checked", dialog)?.value;
    const reason = one("[name=reason]", dialog).value;
    // Kept for as long as it is not known to be done, also where one has to sign in first.
    sessionStorage.setItem(kept, JSON.stringify({ canned, reason }));
    if (await act({ do: `reject:${rows_}`, canned, reason }, row)) sessionStorage.removeItem(kept);
  }

  // --- several at once ----------------------------------------------------------------------------------------

  function ticked() {
    const boxes = all("#queue .tick input:checked");
    const several = all("#queue > .row[data-named]");
    several.forEach(tally);
    const there = new Set(several.flatMap(itemsOf).map(idOf));
    for (const id of unticked) if (!there.has(id)) unticked.delete(id);
    const listed = rows().flatMap(named).length;
    all(".listed").forEach((count) => { count.textContent = listed; });
    const count = one("#ticked");
    if (count) count.textContent = boxes.length ? `: ${boxes.length} ticked` : "";
    offerGroups();
    return boxes;
  }

  function offerGroups() {
    const place = one("#groups");
    if (!place) return;
    const row = one("#queue .tick input:checked")?.closest(".row") || chosen();
    const offers = [];
    for (const [key, words] of [["rule", "for the same reason"], ["sender", "from the same agent"], ["cited", "that cite the same"]]) {
      const value = row?.dataset[key];
      const alike = value ? rows().filter((other) => other.dataset[key] === value) : [];
      if (alike.length < 2) continue;
      const button = element("button", { type: "button", "data-group": key }, `Tick all ${alike.length} ${words}`);
      button.addEventListener("click", () => {
        alike.forEach((other) => { one("input[name=row]", other).checked = true; });
        announce(`${ticked().length} ticked`);
      });
      offers.push(button);
    }
    if (!place.contains(document.activeElement)) place.replaceChildren(...offers);
  }

  let busy = false; // with several

  // Whether a rejection has a reason; else it is asked for.
  function reasoned(form) {
    one(".said", form)?.remove();
    if (one("[name=canned]:checked", form) || one("[name=reason]", form).value.trim()) return true;
    const asks = element("p", { class: "said doubt", role: "alert" }, "Choose a reason, or say it in your own words.");
    one("fieldset", form).after(asks);
    return false;
  }

  function submitted(event) {
    const what = event.submitter?.value || "";
    event.preventDefault();
    if (!what) return;
    if (what.includes(":")) {
      const row = document.getElementById(what.split(":")[1]);
      if (!row) return;
      choose(row, { focus: false });
      approve(row);
      return;
    }
    const data = new FormData(event.target);
    const fields = { do: what, canned: data.get("canned"), supersede: data.get("supersede"), row: [], listed: [] };
    const listed = what.endsWith("-listed");
    const meant = listed ? rows() : ticked().map((box) => box.closest(".row"));
    const unseen = what.startsWith("approve") ? meant.filter((row) => !inSight(row)) : [];
    fields[listed ? "listed" : "row"] = meant.filter((row) => !unseen.includes(row)).flatMap(named);
    unseen.forEach((row) => outcome(row, "Left waiting: not all of it was in sight. Read it beside the list first."));
    const rest = unseen.length ? `${unseen.flatMap(named).length} left waiting, as not all of them was in sight` : "";
    if (what.startsWith("reject") && !fields.canned) {
      say("Choose a reason for the rejection.", "doubt");
      one("#bulk-reason").focus();
      return;
    }
    if (!fields.row.length && !fields.listed.length) { say(rest ? `${rest}.` : "Nothing is ticked.", "doubt"); return; }
    if (busy) return;
    busy = true;
    say("Working on it…");
    act(fields, null, rest).finally(() => { busy = false; });
  }

  // --- what changes elsewhere ---------------------------------------------------------------------------------

  let known = Number(document.body.dataset.seq || 0);
  let timer = 0;

  function setWaiting(count) {
    const badge = one("#badge");
    if (!badge || count === undefined || count === null) return;
    badge.dataset.waiting = count;
    badge.firstChild.data = String(count);
    if (page === "queue") document.title = `${count} waiting · Vouchgate`;
  }

  function refreshSoon(after = 250) {
    if (page !== "queue") return;
    clearTimeout(timer);
    timer = setTimeout(refresh, after);
  }

  let running = null; // the refresh under way: there is one at a time, however many events there are
  let again = false;
  let overtaken = false; // by an act: the page under way may still have what was decided

  function refresh() {
    again = true;
    running ??= keepUp().finally(() => { running = null; });
    return running;
  }

  async function keepUp() {
    while (again) {
      if (one("dialog[open]")) { refreshSoon(1000); return; }
      again = overtaken = false;
      const fresh = await fetched();
      if (!fresh) { refreshSoon(5000); return; }
      if (overtaken || one("dialog[open]")) again = true;
      else bring(fresh);
    }
  }

  // This page as it is now, or null.
  async function fetched() {
    try {
      const answer = await fetch(own(location.href), { headers: { Accept: "text/html" }, signal: AbortSignal.timeout(30000) });
      // Signed out, or signed in anew, perhaps as somebody else: nothing on this page holds any more.
      if (answer.redirected) location.assign(answer.url);
      else if (answer.status === 403) location.reload(); // who rules no more for the owner whose page this is
      const fresh = answer.ok && !answer.redirected ? parsed(await answer.text()) : null;
      if (fresh && fresh.body.dataset.csrf !== csrf) location.reload();
      return fresh?.body.dataset.csrf === csrf ? fresh : null;
    } catch { return null; }
  }

  // Brings the list up to date. The chosen row stays where it is on the screen.
  function bring(fresh) {
    const anchor = chosen() || rows().find((row) => row.getBoundingClientRect().bottom > 0);
    const before = anchor?.getBoundingClientRect().top;
    known = Number(fresh.body.dataset.seq || known);
    one("#waiting").textContent = one("#waiting", fresh).textContent;
    setWaiting(Number(one("#badge", fresh).dataset.waiting));
    swap(".side", fresh);
    if (!one("#queue", fresh)) {
      if (pane()?.contains(document.activeElement)) one("main").focus();
      pane()?.replaceChildren();
    }
    if (list() && one("#queue", fresh)) {
      one("#queue > [aria-current]", fresh).removeAttribute("aria-current"); // the first row of a page; here one is chosen
      reconcile(list(), one("#queue", fresh));
      one("#act").replaceWith(one("#act", fresh));
      one(".more")?.remove();
      list().after(...all(".more", fresh));
      if (chosen()) show(chosen());
      else choose(rows()[0], { focus: document.activeElement === document.body, scroll: false }); // the last one was decided
    } else if (Boolean(list()) !== Boolean(one("#queue", fresh))) {
      if (one("section[aria-labelledby=waiting]").contains(document.activeElement)) one("main").focus();
      const results = one("#results");
      swap("section[aria-labelledby=waiting]", fresh);
      if (results && !results.isConnected) one("section[aria-labelledby=waiting]").append(results);
      if (chosen()) show(chosen());
    }
    ticked();
    if (!anchor?.isConnected || before === undefined || onCard()) return;
    scrollBy(0, anchor.getBoundingClientRect().top - before);
    // A list that is shorter than the window cannot be scrolled: room is left above it until the next is chosen.
    const off = before - anchor.getBoundingClientRect().top;
    const room = Math.max(0, (parseFloat(list()?.style.paddingTop) || 0) + off);
    if (list()) list().style.paddingTop = room ? `${room}px` : "";
  }

  function swap(selector, fresh) {
    const old = one(selector);
    const made = one(selector, fresh);
    if (!old || !made || old.contains(document.activeElement)) return;
    for (const open of all("details[open]", old)) {
      const same = all("details", made)[all("details", old).indexOf(open)];
      if (same) same.open = true;
    }
    old.replaceWith(made);
  }

  function reconcile(old, fresh) {
    // Several are decided one after another: what is left of them meanwhile is nobody's to decide.
    const leaving = new Set(all("#queue > .leaving").flatMap(itemsOf));
    const free = [...fresh.children].filter((row) => !itemsOf(row).some((each) => leaving.has(each)));
    const wanted = new Map(free.map((row) => [row.id, row]));
    // What somebody looks at does not grow under their eyes: others that are like it come when it is left.
    const mine = chosen();
    const held = mine && !mine.matches(".gone, .leaving")
      && [...wanted.values()].find((made) => itemsOf(mine).every((each) => itemsOf(made).includes(each)));
    for (const row of [...old.children]) {
      const now = wanted.get(row.id);
      if (row === mine && held) continue;
      const within = now ? null : [...wanted.values()].find((made) => itemsOf(row).some((each) => itemsOf(made).includes(each)));
      if (within && row === mine) { // another stands for those that are left
        row.id = row.dataset.id = within.id;
        row.dataset.version = "0";
        continue;
      }
      if (now || row.matches(".leaving")) continue; // what becomes of one that is left, its act will say
      if (row !== chosen()) { row.remove(); continue; }
      if (row.matches(".gone")) continue;
      row.classList.add("gone");
      row.append(element("p", { class: "outcome" }, "Decided elsewhere meanwhile, or not in this list any more."));
      all("button, input", row).forEach((control) => control.setAttribute("disabled", ""));
      announce("The chosen claim was decided elsewhere meanwhile, or is not in this list any more.");
    }
    let place = null; // the row after which the next one belongs
    for (const made of wanted.values()) {
      if (made === held && (made.id !== mine.id || made.dataset.named !== mine.dataset.named)) { place = mine; continue; }
      const row = document.getElementById(made.id);
      if (row && row.dataset.version === made.dataset.version && row.dataset.named === made.dataset.named) {
        // How long it waits, how often it was sent and what is said of why change without a new version.
        const is = all(".chips", made);
        all(".chips", row).forEach((was, at) => {
          if (was.innerHTML !== is[at].innerHTML && !was.contains(document.activeElement)) was.replaceWith(is[at]);
        });
        place = row;
        continue;
      }
      if (row) {
        const [wasChosen, focus] = [row === chosen(), row.contains(document.activeElement)];
        row.replaceWith(made);
        if (wasChosen) choose(made, { focus });
      } else if (place) place.after(made);
      else old.prepend(made);
      place = made;
    }
  }

  let stream = null;

  // A browser opens six connections to a site and no more, and a stream holds one: so of the pages that nobody looks
  // at, only the queue has one.
  function listen() {
    if (stream || !one("#badge") || (document.hidden && page !== "queue")) return;
    stream = new EventSource(own("/review/events"));
    stream.addEventListener("queue", (event) => {
      const { waiting, seq } = JSON.parse(event.data);
      setWaiting(waiting);
      if (seq !== known) { known = seq; refreshSoon(); }
    });
    // After a refusal, as when too many pages are open, the browser does not ask again by itself.
    stream.addEventListener("error", () => {
      if (stream?.readyState !== EventSource.CLOSED) return;
      rest();
      setTimeout(listen, 60000);
      refreshSoon();
    });
  }

  function rest() {
    stream?.close();
    stream = null;
  }

  // --- the keyboard -------------------------------------------------------------------------------------------

  const help = one("#help");

  function typing(target) {
    return target.matches("textarea, select, input:not([type=radio]):not([type=checkbox])");
  }

  // 1 to 9 in a group of choices.
  function digit(event) {
    const group = document.activeElement?.closest("fieldset") || one("dialog[open] fieldset");
    const buttons = one("dialog[open]") ? all("dialog[open] button[value]:not([value=ok])") : [];
    const option = group && all("input[type=radio]", group)[Number(event.key) - 1];
    if (option) { option.click(); option.focus(); event.preventDefault(); }
    else if (buttons[Number(event.key) - 1]) { event.preventDefault(); buttons[Number(event.key) - 1].click(); }
  }

  const onQueue = {
    Enter: () => onQueue.o(),
    j: () => step(1),
    k: () => step(-1),
    s: () => step(1),
    a: () => approve(chosen()),
    r: () => reject(chosen()),
    e: () => chosen() && location.assign(one("a.edit", chosen()).href),
    o: () => chosen() && location.assign(one("a.open", chosen()).href),
    u: () => takeBack(),
    x: () => {
      const box = chosen() && one("input[name=row]", chosen());
      if (box) { box.checked = !box.checked; announce(box.checked ? "ticked" : "not ticked"); one("#bulk").open = true; ticked(); }
    },
  };

  const onItem = {
    a: () => {
      const form = one("#approve-form");
      if (!form) return;
      const choice = one("input[type=radio]", form);
      if (choice && !one("input[type=radio]:checked", form)) { choice.focus(); announce("Choose 1 or 2, then Enter."); }
      else if ("final" in form.dataset) { one("button.approve", form).focus(); announce("Enter removes it. This cannot be taken back."); }
      else form.requestSubmit();
    },
    r: () => one("#reject input[type=radio]")?.focus(),
    e: () => { const edit = one("#edit"); if (edit) { edit.open = true; one("textarea", edit).focus(); } },
    u: () => one('form[action$="/undo"]')?.requestSubmit(),
    s: () => one("#skip")?.click(),
    j: () => one("#skip")?.click(),
    k: () => history.back(),
  };

  // An audit: its rows are a list of their own, and acts are forms.
  const inHand = () => one('#rows > li[aria-current="true"]');

  function stepRow(by) {
    const every = all("#rows > li");
    const next = every[every.indexOf(inHand()) + by];
    if (!next) return;
    inHand()?.removeAttribute("aria-current");
    next.setAttribute("aria-current", "true");
    one("input", next).focus({ preventScroll: true });
    next.scrollIntoView({ block: "center" });
  }

  function actOn(verb) {
    const box = inHand() && one("input", inHand());
    if (box && !one("#rows input:checked")) box.checked = true;
    if (one("#rows input:checked")) one(`#clearing button[value=${verb}]`)?.click();
  }

  const onAudits = {
    j: () => stepRow(1),
    k: () => stepRow(-1),
    x: () => inHand() && one("input", inHand()).click(),
    c: () => actOn("clear"),
    f: () => actOn("keep"),
    u: () => one(".acted button")?.click(),
  };

  const everywhere = {
    "/": () => one("#q")?.focus(),
    "?": () => (help?.open ? help.close() : help?.showModal()),
    g: () => location.assign(one("#back")?.href || "/review"),
  };

  // The letter of a key. CapsLock makes a capital of it; where letters are of another script, its place counts.
  function letter(event) {
    if (event.shiftKey || !/^\p{L}$/u.test(event.key)) return event.key;
    if (/^\p{Script=Latin}$/u.test(event.key)) return event.key.toLowerCase();
    return event.code.startsWith("Key") ? event.code.slice(3).toLowerCase() : event.key;
  }

  for (const pressed of ["keydown", "pointerdown"]) document.addEventListener(pressed, () => { aimed = chosen(); });

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (event.key === "Escape" && typing(event.target)) { event.target.blur(); return; }
    if (typing(event.target)) return;
    if (/^[1-9]$/.test(event.key)) { digit(event); return; }
    if (one("dialog[open]")) {
      if (event.key === "?" && help?.open) { event.preventDefault(); help.close(); }
      return;
    }
    const key = letter(event);
    if (key === "Enter" && event.target.closest("a, button, input, select, summary")) return; // it has a meaning there
    const action = { ...everywhere, ...(page === "queue" ? onQueue : page === "item" ? onItem : page === "audits" ? onAudits : {}) }[key];
    if (action && !event.repeat) { event.preventDefault(); action(); }
    else if (action && (key === "j" || key === "k")) { event.preventDefault(); action(); }
  });

  document.addEventListener("focusin", (event) => {
    const row = event.target.closest?.("#queue > .row");
    // Without scrolling: between press and release of a mouse button it would move the row from under the pointer.
    if (row && row !== chosen()) choose(row, { focus: false, scroll: false });
  });

  document.addEventListener("change", (event) => {
    if (event.target.matches("#queue input[name=row]")) ticked();
  });

  // --- what was typed on the page of a claim --------------------------------------------------------------------

  // Kept from when it is sent until it is known to be done, also where one has to sign in first.
  const TYPED = "typed for ";
  const fieldsOf = (form) => all("textarea, input:not([type=hidden])", form);

  function keepTyped(form) {
    const fields = fieldsOf(form).filter((field) => field.type !== "radio" || field.checked).map((field) => [field.name, field.value]);
    sessionStorage.setItem(TYPED + document.body.dataset.id, JSON.stringify([form.action, fields]));
  }

  function bringTyped() {
    const { id } = document.body.dataset;
    const done = new URLSearchParams(location.search).get("done");
    if (done && done !== id) sessionStorage.removeItem(TYPED + done);
    const [action, fields] = JSON.parse(sessionStorage.getItem(TYPED + id) ?? "[]");
    if (!fields) return;
    const form = all("form", one("main")).find((each) => each.action === action
      && fields.every(([name]) => fieldsOf(each).some((field) => field.name === name)));
    if (!form) return; // it waits no more
    for (const field of fieldsOf(form)) {
      const [, value] = fields.find(([name]) => name === field.name) ?? [];
      if (field.type === "radio") field.checked = field.value === value;
      else field.value = value;
      if (value) all("details", document).filter((around) => around.contains(field)).forEach((around) => { around.open = true; });
    }
  }

  let sent = 0; // when a form that leads to another page went off: pressed twice, it goes once

  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.action.endsWith("/sign-out")) sessionStorage.clear(); // what was typed is nobody else's
    if (form.id === "act") submitted(event);
    else if (one("[name=canned]", form) && !reasoned(form)) event.preventDefault();
    else if (form.method === "post" && Date.now() - sent < 10000) event.preventDefault();
    else if (form.method === "post") {
      sent = Date.now();
      if (page === "item" && /\/(approve|reject)$/.test(form.action)) keepTyped(form);
    }
  });

  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a, button");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const row = link.closest("#queue > .row");
    // The second half of a double click would be for the next row, which may have moved here.
    if (event.detail > 1 && link.matches(".acts > *")) event.preventDefault();
    else if (link.dataset.act && chosen()) ({
      approve: () => approve(chosen(), link.dataset.supersede ?? null), reject: () => reject(chosen()), next: () => step(1),
    })[link.dataset.act]();
    else if (link.matches(".cancel")) link.closest("dialog").close("");
    else if (link.id === "help-open") help.showModal();
    else if (row && link.matches("a.reject")) { event.preventDefault(); choose(row, { focus: false }); reject(row); }
    else if (row && link.matches("a.approve")) { event.preventDefault(); choose(row, { focus: false }); approve(row); }
  });

  // On the card of a phone: to the right approves, to the left rejects, and all is asked that the buttons ask.
  const SWIPE = 90; // pixels, more than twice as many as up or down
  let touched = null;

  function release() {
    if (touched) touched.card.style.transform = "";
    touched = null;
  }

  document.addEventListener("pointerdown", (event) => {
    const within = event.target.closest?.("#pane > article, #pane a, #pane button, #pane input, #pane blockquote");
    release();
    if (event.pointerType !== "touch" || !event.isPrimary || !onCard() || !within?.matches("article")) return;
    touched = { x: event.clientX, y: event.clientY, card: within, row: chosen() };
  });
  document.addEventListener("pointermove", (event) => {
    if (!touched || !event.isPrimary || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    touched.card.style.transform = `translateX(${Math.round(event.clientX - touched.x)}px)`;
  });
  document.addEventListener("pointerup", (event) => {
    if (!touched || !event.isPrimary) return;
    const { x, y, row } = touched;
    const across = event.clientX - x;
    release();
    if (Math.abs(across) < SWIPE || Math.abs(across) < 2 * Math.abs(event.clientY - y)) return;
    if (one("dialog[open]") || !row || row !== chosen() || String(getSelection())) return; // who marks words swipes not
    if (across < 0) reject(row);
    else if (one("[data-act=approve]", pane())) approve(row);
  });
  document.addEventListener("pointercancel", release);

  // Where a link leads to a folded form, it is opened.
  function unfold() {
    const target = document.getElementById(location.hash.slice(1));
    if (target instanceof HTMLDetailsElement) { target.open = true; one("textarea, input:not([type=hidden])", target)?.focus(); }
    else if (target?.id === "reject") one("input:not([type=hidden])", target)?.focus();
  }
  addEventListener("hashchange", unfold);
  addEventListener("load", unfold); // not before: going to the place in the address takes the focus away again
  addEventListener("pagehide", rest);
  addEventListener("pageshow", (event) => {
    sent = 0;
    if (event.persisted) { listen(); refreshSoon(0); } // the browser had kept the page as it was
  });
  document.addEventListener("visibilitychange", () => (document.hidden && page !== "queue" ? rest() : listen()));
  if (pane() && chosen()) { // the first comes with the page
    panes.set(keyOf(chosen()), { html: pane().innerHTML, stale: false, ready: Promise.resolve() });
    pane().dataset.shows = `${shownAs(chosen())}${pane().innerHTML}`;
    pane().classList.add("seen");
    sights.add(shownAs(chosen()));
    members(chosen());
    show(chosen());
  }
  bringTyped();
  if (one("#feed[data-going]")) setTimeout(() => one("#feed").requestSubmit(), 300); // time to press Stop
  listen();
})();
