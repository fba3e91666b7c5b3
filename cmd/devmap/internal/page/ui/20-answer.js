// The answer in one sentence, its proof and where it comes from.

function answerSection() {
  const answer = data.answer || {};
  const words = {fits: 'Fits', tight: 'Tight', no: 'Does not fit'};
  const signs = {fits: '✓', tight: '!', no: '✗'};
  document.title = plain(data.title ? data.title + ' · devmap' : 'devmap report');
  document.getElementById('title').textContent = plain(data.title || 'devmap report');
  const word = words[answer.verdict] || answer.verdict || 'No verdict';
  const sentence = answer.sentence || '';
  const verdict = el('span', {class: 'verdict ' + (words[answer.verdict] ? answer.verdict : 'none')},
    el('span', {'aria-hidden': 'true'}, signs[answer.verdict] || '·'), sentence ? null : ' ' + word + '.');
  section('answer', 'Answer',
    el('p', {class: 'answer'}, verdict, ' ', sentence),
    answer.proof ? el('p', {}, answer.proof) : null,
    answer.run ? el('p', {}, answer.run) : null,
    factList(listOf(data.facts)));
}

function factList(facts) {
  if (facts.length === 0) return null;
  return el('dl', {class: 'facts'}, facts.map((fact) => el('div', {},
    el('dt', {}, fact.name),
    el('dd', {}, fact.copy ? copied(fact.value, fact.name) : el('bdi', {}, fact.value)))));
}
