// What a run or watch measured.

function runSection() {
  const run = data.run;
  if (!run) return;
  const node = section('run', 'Measured');
  node.append(el('p', {}, 'Verdict: ', el('strong', {}, run.verdict), run.on ? ', on ' + run.on + '.' : '.'));
  if (run.speed) node.append(el('p', {}, run.speed + '.'));
  if (listOf(run.reasons).length) node.append(el('ul', {}, run.reasons.map((text) => el('li', {}, text))));
  const steps = listOf(run.step_seconds);
  if (steps.length > 1) node.append(stepFigure(run, steps));
  if (listOf(run.gpus).length) node.append(runTable(run.gpus));
}

function stepFigure(run, steps) {
  const x = steps.map((_, i) => i + 1);
  const most = Math.max(...steps, run.step_seconds_predicted || 0);
  return figure('Seconds of each step', {
    height: 210, note: run.step_seconds_predicted ? 'Predicted: ' + seconds(run.step_seconds_predicted) + '.' : '',
    draw: (box, readout) => chart(box, {
      label: 'Seconds of each step', height: 200, x: countAxis, y: {values: secondAxis.values}, data: [x, steps], domain: [0.5, steps.length + 0.5], ceiling: [0, 1.1 * most], stops: x,
      series: [{stroke: () => colour('c0'), width: 2, points: {show: true, size: 6, fill: () => colour('c0')}}],
      draw: (u) => { if (run.step_seconds_predicted) levelLine(u, run.step_seconds_predicted, 'predicted'); },
      moved: (u, value) => {
        if (value === null) return;
        const at = Math.max(1, Math.min(steps.length, Math.round(value)));
        readout.textContent = 'step ' + at + ': ' + seconds(steps[at - 1]);
      },
    }),
    tables: tableLater('Seconds of each step', [{head: 'Step'}, {head: 'Seconds', number: true}], () => steps.map((value, i) => [i + 1, value])),
  });
}

function runTable(gpus) {
  const keys = [...new Set(gpus.flatMap((gpu) => Object.keys(gpu.measured || {})))];
  const rows = gpus.map((gpu) => ['GPU ' + gpu.gpu, gpu.name ?? '', [gpu.predicted_used_bytes].flat().filter((value) => typeof value === 'number').join('–'),
    ...keys.map((key) => [gpu.measured[key]].flat().join('–'))]);
  const number = (head) => ({head, number: true});
  return table('GPUs of the run, bytes', [{head: 'GPU'}, {head: 'Name'}, number('predicted used'), ...keys.map((key) => number(key.replace(/_bytes$/, '').replaceAll('_', ' ')))], rows);
}

function watchSection() {
  const watch = data.watch;
  if (!watch) return;
  const node = section('watch', 'Memory while the command ran');
  if (watch.command) node.append(el('p', {}, 'Command: ', copied(watch.command, 'the command'), watch.seconds ? ' ran for ' + seconds(watch.seconds) + '.' : ''));
  if (watch.exit_status !== undefined || watch.ended) node.append(el('p', {}, 'The command ended: ' + (watch.ended || 'exit status ' + watch.exit_status) + '.'));
  if (watch.note) node.append(el('p', {}, watch.note));
  for (const text of [watch.reasons, watch.notes]) if (listOf(text).length) node.append(el('ul', {}, text.map((line) => el('li', {}, line))));
  node.append(...listOf(watch.gpus).map(watchFigure));
  const number = (head) => ({head, number: true});
  if (listOf(watch.processes).length) {
    node.append(table('Processes with PyTorch, bytes', [{head: 'Process'}, number('GPU'), number('Allocated, peak'), number('Reserved, peak'), number('Allocated'), number('Reserved'), number('Out of memory'), number('Retries')],
      watch.processes.map((one) => [one.pid, one.gpu ?? '', one.allocated_peak_bytes ?? '', one.reserved_peak_bytes ?? '', one.allocated_bytes ?? '', one.reserved_bytes ?? '', one.out_of_memory ?? '', one.retries ?? ''])));
  }
  if (listOf(watch.explained).length) {
    node.append(table('Difference of measured and predicted memory, bytes', [{head: 'GPU'}, number('Allocated'), number('Cache'), number('Outside of PyTorch'), {head: 'Reasons'}],
      watch.explained.map((one) => ['GPU ' + one.device, one.allocated ?? '', one.cache ?? '', one.outside ?? '', listOf(one.reasons).join('; ')])));
  }
}

function watchFigure(gpu) {
  const range = listOf(gpu.predicted_used_bytes);
  const others = listOf(gpu.others);
  const highest = Math.max(...gpu.most, ...range, 1);
  const at = (value) => Math.max(0, lastAtMost(gpu.x, value));
  const text = (i) => seconds(gpu.x[i] / 1e3) + ': ' + bytes(gpu.used[i]) + (gpu.most[i] > gpu.used[i] ? '–' + bytes(gpu.most[i]) : '') + (others.length ? ', other processes ' + bytes(others[i]) : '');
  const note = [range.length === 2 ? 'Predicted: ' + bytes(range[0]) + '–' + bytes(range[1]) + '.' : '', gpu.growth_bytes ? 'Growth: ' + bytes(gpu.growth_bytes) + ' over ' + (gpu.plateaus ?? 0) + ' plateaus.' : '', gpu.others_text].filter(Boolean).join(' ');
  const line = (name, dash) => ({stroke: () => colour(name), width: 2, dash, points: {show: gpu.x.length < 40, size: 5}, paths: uPlot.paths.stepped({align: 1})});
  const number = (head) => ({head, number: true});
  const title = 'GPU ' + gpu.gpu + (gpu.name ? ', ' + gpu.name : '');
  return figure(title, {
    height: 230, note, hint: gpu.x.length ? text(gpu.x.length - 1) : 'No reading.',
    draw: (box, readout) => {
      if (gpu.x.length === 0) return;
      chart(box, {
        group: 'watch', label: 'Memory of ' + title + ' while the command ran', height: 220, x: {values: (_, splits) => splits.map((value) => seconds(value / 1e3)), space: 70}, y: byteAxis(highest),
        data: [gpu.x, gpu.most, gpu.used, ...(others.length ? [others] : [])], stops: gpu.x,
        series: [{...line('c1'), fill: () => colour('faint')}, line('c0', [6, 3]), ...(others.length ? [line('c2', [2, 3])] : [])],
        domain: [Math.min(0, gpu.x[0]), Math.max(gpu.x[gpu.x.length - 1], gpu.x[0] + 1)], ceiling: [0, 1.1 * highest],
        draw: (u) => { if (range.length === 2) [['', range[0]], ['predicted', range[1]]].forEach(([name, value]) => levelLine(u, value, name)); },
        moved: (_, value) => { if (value !== null) readout.textContent = text(at(value)); },
      });
    },
    after: el('ul', {class: 'legend', 'aria-label': 'Lines'}, [['line-most', 'highest reading'], ['line-used', 'lowest reading'], ...(others.length ? [['line-others', 'other processes']] : [])].map(([style, name]) => el('li', {}, el('span', {class: 'key ' + style}), name))),
    tables: tableLater('readings of ' + title, [number('Time'), number('Lowest, bytes'), number('Highest, bytes'), ...(others.length ? [number('Other processes, bytes')] : [])], () => gpu.x.map((x, i) => [seconds(x / 1e3), gpu.used[i], gpu.most[i], ...(others.length ? [others[i]] : [])])),
  });
}
