// The order of the page, and its answer to light, dark and paper.

function show(page) {
  data = page;
  for (const id of ['main', 'sections']) document.getElementById(id).replaceChildren();
  for (const u of charts) u.destroy();
  charts.clear();
  groups.clear();
  pending.clear();
  painted = [];
  answerSection();
  gpusSection();
  memorySection();
  document.getElementById('memory').append(...arenaFigures());
  timeSection();
  whySection();
  runSection();
  watchSection();
}

// A report of several plans shows one at a time.
function chooser() {
  const select = el('select', {id: 'plan'}, pages.map((page, i) => el('option', {value: i}, 'Plan ' + (i + 1) + ' of ' + pages.length + ': ' + (page.title || ''))));
  select.addEventListener('change', () => show(pages[Number(select.value)]));
  document.querySelector('header').append(el('p', {class: 'chooser'}, el('label', {for: 'plan'}, 'Plan: '), select));
}

show(data);
if (pages.length > 1) chooser();

window.addEventListener('beforeprint', () => paper(true));
window.addEventListener('afterprint', () => paper(false));
window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', repaint);
