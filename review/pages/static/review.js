// The keyboard, acts without a reload, and the live queue. Everything here also works as plain links and forms.
// One file, though it is long: there is no build, and a second one would be one more thing to wait for.
"use strict";

(() => {
  const one = (selector, within = document) => within.querySelector(selector);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const { page, csrf } = document.body.dataset;
  const live = one("#live");
  const undoable = []; // what this page did, an act at a time: the items of each with their versions

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
    if (scroll) row.scrollIntoView({ block: "nearest" });
    offerGroups();
  }

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

  // A message over the list, with the way back.
  function say(text, kind = "", undo = null) {
    all("main > .said.by-script").forEach((old) => old.remove());
    const bar = element("div", { class: `said by-script ${kind}` }, element("p", {}, text));
    if (undo) {
      const button = element("button", { type: "button" }, "Undo ", element("kbd", { "aria-hidden": "true" }, "u"));
      button.addEventListener("click", takeBack);
      bar.append(button);
    }
    one("main").prepend(bar);
    announce(text);
  }

  async function act(fields, several = false) {
    // A single row is left at once: the next key is for the next row, however long the answer takes.
    const left = several ? null : document.getElementById(fields.do.split(":")[1]);
    if (left) leave(left);
    const answer = await send(fields);
    left?.classList.remove("leaving");
    if (!answer) return;
    overtaken = true;
    const current = chosen();
    const after = current && rows().slice(rows().indexOf(current) + 1).find((row) => !answer.results.some((r) => r.id === row.dataset.id));
    let done = 0;
    const back = answer.results.filter((result) => result.undo_version).map((result) => `${result.id}:${result.undo_version}`);
    if (back.length) undoable.push(back.reverse()); // the last first: it may have replaced what one before it stored
    for (const result of answer.results) {
      const row = document.getElementById(result.id);
      if (result.done) {
        done += 1;
        if (row) row.remove();
      } else if (row) {
        one(".outcome", row)?.remove();
        row.append(element("p", { class: "outcome", role: "alert" }, result.message));
        one("input[name=row]", row).checked = false;
        if (result.asks) row.dataset.conflict = "";
      }
    }
    setWaiting(answer.waiting);
    const [first] = answer.results;
    if (several) {
      showResults(answer);
      say(answer.summary, done === answer.results.length ? "" : "doubt", back.length > 0);
    } else if (first) {
      say(first.message, first.done ? "" : "bad", first.done && Boolean(first.undo_version));
    }
    if (current && !current.isConnected) choose(after || rows().at(-1) || null);
    ticked();
    refreshSoon(0);
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

  async function takeBack() {
    const last = undoable.pop();
    if (!last) {
      const form = one('.said form[action$="/undo"]');
      if (form) form.requestSubmit();
      else announce("There is nothing to undo here.");
      return;
    }
    const answer = await send({ do: "undo-ticked", row: last });
    if (!answer) { undoable.push(last); return; }
    overtaken = true;
    const failed = answer.results.filter((result) => !result.done);
    const [first] = failed.length ? failed : answer.results;
    say(last.length > 1 ? `${answer.summary}${failed.length ? `. ${first.message}` : ""}` : first.message, failed.length ? "bad" : "");
    setWaiting(answer.waiting);
    one("#results")?.remove();
    await refresh();
    const row = document.getElementById(first.id);
    if (row) choose(row);
  }

  const named = (row) => `${row.dataset.id}:${row.dataset.version}`;

  // The dialog's answer: the value of the button that closed it, or null.
  function ask(dialog, claim) {
    const text = one(".claim", dialog);
    text.replaceChildren(...[...claim.childNodes].map((node) => node.cloneNode(true)));
    one("form", dialog).reset();
    one(".said", dialog)?.remove();
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

  async function approve(row) {
    if (!waits(row)) return undefined;
    if ("cut" in row.dataset) { location.assign(one("a.open", row).href); return undefined; } // there is more of it
    if (!("conflict" in row.dataset)) return act({ do: `approve:${named(row)}` });
    const answer = await ask(one("#conflict-dialog"), one("a.open", row));
    if (answer === "look") location.assign(one("a.open", row).href);
    else if (answer) await act({ do: `approve:${named(row)}`, supersede: answer });
    return undefined;
  }

  async function reject(row) {
    if (!waits(row)) return;
    const dialog = one("#reject-dialog");
    const answer = await ask(dialog, one("a.open", row));
    if (answer !== "ok") return;
    const canned = one("input[name=canned]:checked", dialog)?.value;
    const reason = one("[name=reason]", dialog).value;
    await act({ do: `reject:${named(row)}`, canned, reason });
  }

  // --- several at once ----------------------------------------------------------------------------------------

  function ticked() {
    const boxes = all("#queue input[name=row]:checked");
    all(".listed").forEach((shown) => { shown.textContent = rows().length; });
    const shown = one("#ticked");
    if (shown) shown.textContent = boxes.length ? `: ${boxes.length} ticked` : "";
    offerGroups();
    return boxes;
  }

  function offerGroups() {
    const place = one("#groups");
    if (!place) return;
    const row = one("#queue input[name=row]:checked")?.closest(".row") || chosen();
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
      if (row) { choose(row, { focus: false }); approve(row); }
      return;
    }
    const data = new FormData(event.target);
    const fields = { do: what, canned: data.get("canned"), supersede: data.get("supersede"), row: [], listed: [] };
    if (what.endsWith("-listed")) fields.listed = rows().map(named);
    else fields.row = data.getAll("row");
    if (!fields.row.length && !fields.listed.length) { say("Nothing is ticked.", "doubt"); return; }
    if (busy) return;
    busy = true;
    say("Working on it…");
    act(fields, true).finally(() => { busy = false; });
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
      const answer = await fetch(location.href, { headers: { Accept: "text/html" }, signal: AbortSignal.timeout(30000) });
      // Signed out, or signed in anew, perhaps as somebody else: nothing on this page holds any more.
      if (answer.redirected) location.assign(answer.url);
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
    if (list() && one("#queue", fresh)) {
      one("#queue > [aria-current]", fresh).removeAttribute("aria-current"); // the first row of a page; here one is chosen
      reconcile(list(), one("#queue", fresh));
      one("#act").replaceWith(one("#act", fresh));
      one(".more")?.remove();
      list().after(...all(".more", fresh));
    } else if (Boolean(list()) !== Boolean(one("#queue", fresh))) {
      if (one("section[aria-labelledby=waiting]").contains(document.activeElement)) one("main").focus();
      const results = one("#results");
      swap("section[aria-labelledby=waiting]", fresh);
      if (results && !results.isConnected) one("section[aria-labelledby=waiting]").append(results);
    }
    ticked();
    if (anchor?.isConnected && before !== undefined) scrollBy(0, anchor.getBoundingClientRect().top - before);
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
    const wanted = new Map([...fresh.children].map((row) => [row.id, row]));
    for (const row of [...old.children]) {
      const now = wanted.get(row.id);
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
      const row = document.getElementById(made.id);
      if (row && row.dataset.version === made.dataset.version) {
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
    stream = new EventSource("/review/events");
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
      else form.requestSubmit();
    },
    r: () => one("#reject input[type=radio]")?.focus(),
    e: () => { const edit = one("#edit"); if (edit) { edit.open = true; one("textarea", edit).focus(); } },
    u: () => one('form[action$="/undo"]')?.requestSubmit(),
    s: () => one("#skip")?.click(),
    j: () => one("#skip")?.click(),
    k: () => history.back(),
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
    const action = { ...everywhere, ...(page === "queue" ? onQueue : page === "item" ? onItem : {}) }[key];
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

  let sent = 0; // when a form that leads to another page went off: pressed twice, it goes once

  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.id === "act") submitted(event);
    else if (one("[name=canned]", form) && !reasoned(form)) event.preventDefault();
    else if (form.method === "post" && Date.now() - sent < 10000) event.preventDefault();
    else if (form.method === "post") sent = Date.now();
  });

  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a, button");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const row = link.closest("#queue > .row");
    // The second half of a double click would be for the next row, which may have moved here.
    if (row && event.detail > 1 && link.matches(".acts > *")) event.preventDefault();
    else if (link.matches(".cancel")) link.closest("dialog").close("");
    else if (link.id === "help-open") help.showModal();
    else if (row && link.matches("a.reject")) { event.preventDefault(); choose(row, { focus: false }); reject(row); }
    else if (row && link.matches("a.approve")) { event.preventDefault(); choose(row, { focus: false }); approve(row); }
  });

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
  listen();
})();
