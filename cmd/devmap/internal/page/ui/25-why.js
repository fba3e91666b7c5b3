// Why the plan is as it is, and what to try next.

function whySection() {
  const why = data.why;
  if (!why) return;
  const node = section('why', 'Why, and next steps');
  if (why.limit) node.append(el('p', {class: 'limit'}, why.limit));
  if (listOf(why.bound).length) node.append(el('ul', {}, why.bound.map((text) => el('li', {}, text))));
  if (why.note) node.append(el('p', {}, why.note));
  if (listOf(why.changes).length) node.append(...changeList(why.changes));
  if (why.front && listOf(why.front.points).length) node.append(frontFigure(why.front));
  if (why.now && listOf(why.now.gpus).length) node.append(nowFigure(why.now));
  else if (why.now) node.append(el('h3', {}, why.now.title), el('p', {}, why.now.note));
  if (listOf(why.warnings).length) node.append(el('h3', {}, 'Notes'), el('ul', {}, why.warnings.map((text) => el('li', {}, text))));
}

function changeList(changes) {
  const sign = (change) => (change.fits === undefined ? null : el('span', {class: 'verdict ' + (change.fits ? 'fits' : 'no')}, change.fits ? '✓ ' : '✗ '));
  return [el('h3', {}, 'Changes to try'), el('ul', {class: 'changes'}, changes.map((change) => el('li', {},
    el('p', {}, sign(change), el('strong', {}, change.text), change.effect ? ': ' + change.effect : ''),
    change.command ? copied(change.command, 'the command of ' + change.text) : null)))];
}

function frontFigure(front) {
  const points = [...front.points].sort((a, b) => a.seconds - b.seconds || a.peak_bytes - b.peak_bytes);
  const x = points.map((point) => point.seconds);
  const y = points.map((point) => point.peak_bytes);
  const text = (point) => [point.label, seconds(point.seconds) + ', ' + bytes(point.peak_bytes), point.chosen ? 'this plan' : ''].filter(Boolean).join(': ');
  const number = (head) => ({head, number: true});
  const spread = (x[x.length - 1] - x[0]) * 0.08 || x[0] * 0.1 || 1;
  return figure('Step and peak: plans that no other plan beats in both', {
    height: 240, hint: points.filter((point) => point.chosen).map(text).join('') || 'Point at a plan, or use the arrow keys.',
    draw: (box, readout) => chart(box, {
      label: 'Plans by step and peak', height: 230, x: secondAxis, y: byteAxis(Math.max(...y)), data: [x, y], stops: x,
      domain: [x[0] - spread, x[x.length - 1] + spread], ceiling: [0, 1.1 * Math.max(...y)],
      series: [{stroke: () => colour('c0'), width: 2, paths: uPlot.paths.stepped({align: 1}), points: {show: true, size: 9, fill: () => colour('page'), stroke: () => colour('c0')}}],
      moved: (u, value) => {
        if (value === null) return;
        const nearest = points.reduce((best, point) => (Math.abs(point.seconds - value) < Math.abs(best.seconds - value) ? point : best), points[0]);
        readout.textContent = plain(text(nearest));
      },
      draw: (u) => points.filter((point) => point.chosen).forEach((point) => ring(u, point)),
    }),
    tables: tableLater('Step and peak', [{head: 'Plan'}, number('Step, s'), number('Peak, bytes'), {head: 'Chosen'}], () => points.map((point) => [point.label ?? '', point.seconds, point.peak_bytes, point.chosen ? 'yes' : ''])),
  });
}

function ring(u, point) {
  const pen = u.ctx;
  pen.save();
  pen.fillStyle = pen.strokeStyle = colour('text');
  const [left, top] = [u.valToPos(point.seconds, 'x', true), u.valToPos(point.peak_bytes, 'y', true)];
  pen.beginPath();
  pen.arc(left, top, 5 * devicePixelRatio, 0, 2 * Math.PI);
  pen.fill();
  pen.font = 12 * devicePixelRatio + 'px system-ui, sans-serif';
  pen.textAlign = left > u.bbox.left + u.bbox.width * 0.8 ? 'right' : 'left';
  pen.fillText('this plan', left + (pen.textAlign === 'left' ? 9 : -9) * devicePixelRatio, top - 6 * devicePixelRatio);
  pen.restore();
}

// What the engine does by itself, against this plan.
function nowFigure(now) {
  const planned = new Map(listOf(data.gpus).map((gpu) => [gpu.device, gpu]));
  const whole = Math.max(...now.gpus.map((gpu) => Math.max(gpu.peak_bytes, gpu.budget_bytes || 0, (planned.get(gpu.device) || {peak_bytes: 0}).peak_bytes)));
  const verdict = {fits: '✓ fits', tight: '! tight', no: '✗ does not fit'};
  const line = (name, value, index) => el('div', {class: 'measured'}, el('span', {}, name + ' ' + bytes(value)),
    bar([{bytes: value, index, family: 'c', title: bytes(value)}], whole, name + ' ' + bytes(value)));
  return el('figure', {}, el('figcaption', {}, el('h3', {}, 'What you have now: ' + now.title), el('p', {}, [now.note, now.seconds ? 'Step: ' + seconds(now.seconds) + '.' : ''].filter(Boolean).join(' '))),
    el('ul', {class: 'bars'}, now.gpus.map((gpu) => el('li', {},
      el('div', {class: 'head'}, el('strong', {}, 'GPU ' + gpu.device), gpu.verdict ? el('span', {class: 'verdict ' + gpu.verdict}, verdict[gpu.verdict] || gpu.verdict) : null),
      line('now', gpu.peak_bytes, 1), planned.has(gpu.device) ? line('this plan', planned.get(gpu.device).peak_bytes, 0) : null))),
    tableLater('Peaks now and in this plan', [{head: 'GPU'}, {head: 'Now, bytes', number: true}, {head: 'This plan, bytes', number: true}, {head: 'Budget, bytes', number: true}],
      () => now.gpus.map((gpu) => ['GPU ' + gpu.device, gpu.peak_bytes, planned.has(gpu.device) ? planned.get(gpu.device).peak_bytes : '', gpu.budget_bytes ?? ''])));
}
