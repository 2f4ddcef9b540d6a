'use strict';
const boxes = [...document.querySelectorAll('.filter input')];
const cards = [...document.querySelectorAll('article[data-verdict]')];

function filter() {
  const shown = new Set(boxes.filter(box => box.checked).map(box => box.value));
  for (const card of cards) card.hidden = !shown.has(card.dataset.verdict);
  for (const words of document.querySelectorAll('a.v')) words.classList.toggle('off', !shown.has(words.dataset.verdict));
}

// In the middle of the window, so that the claim beside it and what is around both can be read.
function show(card) {
  card?.focus({ preventScroll: true });
  card?.scrollIntoView({ block: 'center' });
}

function step(by) {
  const seen = cards.filter(card => !card.hidden);
  const at = seen.indexOf(document.activeElement);
  const next = at < 0 ? (by > 0 ? 0 : seen.length - 1) : Math.min(seen.length - 1, Math.max(0, at + by));
  show(seen[next]);
}

for (const box of boxes) box.addEventListener('change', filter);
document.addEventListener('focusin', () => {
  const id = document.activeElement.closest('article[data-verdict]')?.id;
  for (const words of document.querySelectorAll('a.v.here')) words.classList.remove('here');
  if (id) document.querySelector(`a.v[href="#${id}"]`)?.classList.add('here');
});
document.addEventListener('click', event => {
  const words = event.target.closest('a.v');
  if (words) show(document.getElementById(words.hash.slice(1)));
});
document.addEventListener('keydown', event => {
  if (event.altKey || event.ctrlKey || event.metaKey) return;
  if (event.key === 'j') step(1);
  else if (event.key === 'k') step(-1);
});
