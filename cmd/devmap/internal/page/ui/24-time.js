// Time: a lane for each stage and stream. A gap of a compute lane is a bubble. The cursor
// is the one of the memory pictures with a time axis.

function timeSection() {
  const time = data.time;
  const node = section('time', 'Time');
  if (!time) return node.append(el('p', {}, 'The plan has no times.'));
  if (time.note) node.append(el('p', {}, time.note));
  if (listOf(time.phases).length > 0) node.append(phaseFigure(time.phases));
  if (listOf(time.lanes).length > 0) node.append(laneFigure(time));
  return node;
}

// Width of the names of lanes. Charts with a time axis share it: their cursors align.
function leftOfTime() {
  const lanes = data.time ? listOf(data.time.lanes) : [];
  return Math.max(64, Math.min(130, 12 + 6.6 * Math.max(0, ...lanes.map((lane) => lane.name.length))));
}

const waitOf = (wait) => nameOf(wait.for);

function laneFigure(time) {
  const {lanes} = time;
  const kinds = listOf(time.kinds);
  const seen = [...new Set(lanes.flatMap((lane) => [...new Set(lane.kind)]))].sort((a, b) => a - b);
  const row = lanes.length > 24 ? 14 : 24;
  const height = lanes.length * row + 50;
  const compute = lanes.filter((lane) => lane.bubble !== undefined);
  const bubble = sum(compute.map((lane) => lane.bubble));
  const note = [time.step_seconds ? 'Step: ' + seconds(time.step_seconds) + '.' : '', 'The lanes end at ' + moment(time.makespan) + '.',
    compute.length ? 'Compute streams wait ' + percent(bubble, bubble + sum(compute.map((lane) => lane.busy))) + ' of the time (bubbles).' : ''].filter(Boolean).join(' ');
  const extra = [['bubble', 'bubble']];
  if (listOf(time.waits).length) extra.push(['wait', 'wait']);
  if (listOf(time.path).length) extra.push(['path', 'critical path']);
  const number = (head) => ({head, number: true});
  const spans = () => lanes.flatMap((lane) => lane.start.map((start, i) => [lane.name, kinds[lane.kind[i]] ?? '', lane.batch && lane.batch[i] >= 0 ? lane.batch[i] : '',
    lane.label ? nameOf(lane.label[i]) : '', moment(start), moment(lane.length[i])]));
  return figure('Stages and streams', {
    height, note, hint: 'Point at a bar, or use the arrow keys. Drag zooms, a double click shows all.',
    draw: (box, readout) => drawLanes(time, kinds, box, readout, row, height),
    after: legend(seen.map((kind) => [kind, kinds[kind]]), 't', extra),
    tables: [
      tableLater('busy and idle time of lanes', [{head: 'Lane'}, number('Busy'), number('Bubble'), number('Spans')], () => lanes.map((lane) => [lane.name, moment(lane.busy ?? sum(lane.length)), lane.bubble === undefined ? '' : moment(lane.bubble), lane.start.length])),
      tableLater('all spans', [{head: 'Lane'}, {head: 'Kind'}, number('Micro-batch'), {head: 'What'}, number('Start'), number('Length')], spans),
      listOf(time.waits).length ? tableLater('longest waits', [{head: 'Lane'}, number('From'), number('To'), {head: 'For'}], () => time.waits.map((wait) => [lanes[wait.lane].name, moment(wait.from), moment(wait.to), waitOf(wait)])) : null,
    ],
  });
}

function drawLanes(time, kinds, box, readout, row, height) {
  const {lanes} = time;
  const waits = listOf(time.waits);
  const path = lanes.map(() => new Set());
  for (const [lane, span] of listOf(time.path)) if (path[lane]) path[lane].add(span);
  let chosen = 0;
  const labels = leftOfTime();
  const at = (lane, x) => {
    const i = lastAtMost(lane.start, x);
    return i >= 0 && x < lane.start[i] + lane.length[i] ? i : -1;
  };
  const say = (x) => {
    const lane = lanes[chosen];
    const i = at(lane, x);
    const wait = waits.find((one) => one.lane === chosen && one.from <= x && x < one.to);
    let what = lane.bubble === undefined ? 'nothing' : 'bubble';
    if (i < 0 && wait) what = 'waits for ' + waitOf(wait);
    if (i >= 0) {
      what = kinds[lane.kind[i]] + (lane.batch && lane.batch[i] >= 0 ? ' of micro-batch ' + lane.batch[i] : '') + (lane.label && nameOf(lane.label[i]) ? ', ' + nameOf(lane.label[i]) : '') +
        ', from ' + moment(lane.start[i]) + ' for ' + moment(lane.length[i]) + (path[chosen].has(i) ? ', on the critical path' : '');
    }
    readout.textContent = plain(moment(x) + ', ' + lane.name + ': ' + what);
  };
  const stops = () => {
    const lane = lanes[chosen];
    return lane.start.length ? lane.start : [0];
  };
  const options = {
    group: 'time', label: 'Lanes of stages and streams', height, acrossY: true, x: momentAxis,
    y: {splits: () => lanes.map((_, i) => -i - 0.5), values: () => lanes.map((lane) => fitting(plain(lane.name), labels)), grid: {show: false}, ticks: {show: false}, font: (row < 20 ? 10 : 12) + 'px system-ui, sans-serif', gap: 4},
    data: [[0, endOfTime()], [0, 0]], series: [{show: false}], domain: [0, endOfTime()], ceiling: [-lanes.length, 0],
    moved: (u, x) => {
      if (x === null) return;
      if (u.cursor.event && u.cursor.event.target === u.over && u.cursor.top >= 0) chosen = Math.max(0, Math.min(lanes.length - 1, Math.floor(-u.posToVal(u.cursor.top, 'y'))));
      say(x);
    },
    across: (u, direction) => {
      chosen = Math.max(0, Math.min(lanes.length - 1, chosen + direction));
      u.setCursor({left: Math.max(0, u.cursor.left), top: u.valToPos(-chosen - 0.5, 'y')}, true, false);
      say(u.posToVal(u.cursor.left, 'x'));
    },
    draw: (u) => clipped(u, () => lanes.forEach((lane, index) => drawLane(u, lane, index, path[index], waits, kinds))),
  };
  Object.defineProperty(options, 'stops', {get: stops});
  chart(box, options);
}

const fitting = (text, width) => (text.length * 6.6 + 12 > width ? text.slice(0, Math.floor((width - 12) / 6.6) - 1) + '…' : text);

function drawLane(u, lane, index, path, waits, kinds) {
  const pen = u.ctx;
  const top = u.valToPos(-index, 'y', true) + 1;
  const height = u.valToPos(-index - 1, 'y', true) - top - 1;
  const x = (value) => u.valToPos(value, 'x', true);
  const [from, to] = [u.scales.x.min, u.scales.x.max];
  if (lane.bubble !== undefined) {
    pen.fillStyle = colour('bubble');
    pen.fillRect(x(Math.max(0, from)), top, x(to) - x(Math.max(0, from)), height);
  }
  for (const wait of waits) {
    if (wait.lane !== index) continue;
    pen.fillStyle = colour('wait');
    pen.fillRect(x(wait.from), top + height - Math.max(3, height / 4), x(wait.to) - x(wait.from), Math.max(3, height / 4));
  }
  const several = lane.batch && lane.batch.some((batch) => batch > 0);
  const fills = kinds.map((_, kind) => patternOf(pen, kind, 't'));
  const first = Math.max(0, lastAtMost(lane.start, from));
  for (let i = first; i < lane.start.length && lane.start[i] <= to; i++) {
    const left = x(lane.start[i]);
    const width = Math.max(x(lane.start[i] + lane.length[i]) - left, 0.5);
    pen.fillStyle = fills[lane.kind[i]];
    pen.fillRect(left, top, width, height);
    if (width > 4) outline(pen, left, top, width, height);
    if (path.has(i)) {
      pen.fillStyle = colour('path');
      pen.fillRect(left, top, width, Math.max(2, height / 6));
    }
  }
  if (several) batchTexts(pen, lane, first, to, x, top, height);
}

// The number of the micro-batch, once for spans that follow one another.
function batchTexts(pen, lane, first, to, x, top, height) {
  for (let i = first; i < lane.start.length && lane.start[i] <= to;) {
    let end = i + 1;
    while (end < lane.start.length && lane.batch[end] === lane.batch[i] && lane.kind[end] === lane.kind[i]) end++;
    const left = x(lane.start[i]);
    spanText(pen, lane, i, left, top, x(lane.start[end - 1] + lane.length[end - 1]) - left, height);
    i = end;
  }
}

// The number of the micro-batch, where it fits.
function spanText(pen, lane, i, left, top, width, height) {
  const size = 11 * devicePixelRatio;
  if (lane.batch[i] < 0 || height < size) return;
  const text = String(lane.batch[i]);
  pen.font = size + 'px system-ui, sans-serif';
  const needed = pen.measureText(text).width + 4 * devicePixelRatio;
  if (needed + 2 * devicePixelRatio > width) return;
  pen.fillStyle = colour('page');
  pen.fillRect(left + (width - needed) / 2, top + (height - size) / 2 - 1, needed, size + 2);
  pen.fillStyle = colour('text');
  pen.textAlign = 'center';
  pen.textBaseline = 'middle';
  pen.fillText(text, left + width / 2, top + height / 2);
}

function phaseFigure(phases) {
  const whole = Math.max(...phases.map((phase) => phase.seconds || 0));
  return el('figure', {}, el('figcaption', {}, el('h3', {}, 'Seconds of each phase')),
    el('ul', {class: 'bars'}, phases.map((phase, index) => el('li', {},
      el('div', {class: 'head'}, el('strong', {}, phase.name), el('span', {}, seconds(phase.seconds))),
      bar([{bytes: phase.seconds, index, family: 't', title: seconds(phase.seconds)}], whole, phase.name + ': ' + seconds(phase.seconds))))),
    tableLater('Seconds of each phase', [{head: 'Phase'}, {head: 'Seconds', number: true}], () => phases.map((phase) => [phase.name, phase.seconds])));
}
