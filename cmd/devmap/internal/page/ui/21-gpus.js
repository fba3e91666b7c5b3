// Bars of each GPU by category against its budget, with the allocator's range and, after
// a run, the measured memory. Under each bar are the contents by module.

let categories = [];
const overhead = () => data.overhead || 'CUDA context';
const gpuName = (gpu) => 'GPU ' + gpu.device;

function gpusSection() {
  const gpus = listOf(data.gpus);
  categories = listOf(data.categories);
  if (gpus.length === 0) return; // no plan
  const node = section('gpus', 'GPUs');
  node.append(gpuPictures(gpus, 'Memory of each GPU at its peak'));
  const modules = moduleFigure(gpus);
  if (modules) node.append(modules);
  for (const phase of listOf(data.phases)) {
    const title = 'Phase ' + phase.name + (phase.component ? ' (' + phase.component + ')' : '');
    node.append(el('details', {class: 'pictures'}, el('summary', {}, title + (phase.seconds ? ', ' + seconds(phase.seconds) : '')),
      gpuPictures(listOf(phase.gpus), title)));
  }
  return node;
}

const slackOf = (gpu) => listOf(gpu.slack_bytes).length === 2 ? gpu.slack_bytes : [0, 0];

function gpuPictures(gpus, title) {
  const used = categories.map((category, index) => [index, category.label]).filter(([index]) => gpus.some((gpu) => gpu.bytes[index] > 0));
  const measured = gpus.some((gpu) => gpu.measured);
  const marks = [['overhead', overhead()], ['slack', 'allocator, lowest to highest'], ['budget', 'budget']];
  if (measured) marks.push(['seen', 'measured']);
  const whole = Math.max(...gpus.map((gpu) => Math.max(gpu.capacity_bytes || 0, highest(gpu))));
  return el('figure', {}, el('figcaption', {}, el('h3', {}, title), legend(used, 'c', marks)),
    el('ul', {class: 'bars'}, gpus.map((gpu) => gpuBar(gpu, whole))),
    tableLater(title + ', bytes', gpuColumns(gpus, used, measured), () => gpus.map((gpu) => gpuRow(gpu, used, measured, gpus.some((one) => one.usual_peak_bytes)))));
}

function highest(gpu) {
  const measured = gpu.measured || {};
  return Math.max(gpu.peak_bytes + (gpu.overhead_bytes || 0) + slackOf(gpu)[1], measured.device_used_bytes || 0, measured.peak_reserved_bytes || 0);
}

function gpuBar(gpu, whole) {
  const budget = gpu.budget_bytes || gpu.capacity_bytes;
  const parts = gpu.bytes.map((value, index) => ({bytes: value, index, family: 'c', title: categories[index].label + ' ' + bytes(value)}));
  const [low, high] = slackOf(gpu);
  parts.push({bytes: gpu.overhead_bytes, style: 'overhead', title: overhead() + ' ' + bytes(gpu.overhead_bytes)});
  parts.push({bytes: low, style: 'slack low', title: 'allocator, at least ' + bytes(low)});
  parts.push({bytes: high - low, style: 'slack', title: 'allocator, at most ' + bytes(high)});
  const used = gpu.peak_bytes + (gpu.overhead_bytes || 0);
  const range = data.peak_open ? listOf(gpu.peak_range_bytes) : [];
  const text = 'peak ' + (gpu.at_least ? 'at least ' : '') + (range.length === 2 && range[0] < range[1] ? bytes(range[0]) + '–' + bytes(range[1]) : bytes(gpu.peak_bytes)) +
    (gpu.usual_peak_bytes ? ' (of the usual batch ' + bytes(gpu.usual_peak_bytes) + ')' : '') + ', with ' + overhead() + ' ' + bytes(used) + ' of ' + bytes(budget) + ', ' + percent(used, budget) +
    (high > 0 ? '; allocator up to ' + bytes(used + high) : '');
  const label = gpuName(gpu) + ': ' + text;
  const picture = bar(parts, whole, label);
  const mark = el('span', {class: 'budget-mark', title: 'budget ' + bytes(budget)});
  mark.style.left = (100 * budget / whole) + '%';
  picture.append(mark);
  const verdict = {fits: '✓ fits', tight: '! tight', no: '✗ does not fit'}[gpu.verdict] || gpu.verdict;
  return el('li', {}, el('div', {class: 'head'},
    el('strong', {}, gpuName(gpu)), el('bdi', {class: 'quiet'}, gpu.gpu),
    el('span', {}, text),
    el('span', {class: 'verdict ' + gpu.verdict}, verdict),
    gpu.peak_at ? el('span', {class: 'quiet'}, 'at ', el('bdi', {}, gpu.peak_at)) : null),
  gpu.layers ? el('p', {class: 'quiet'}, 'Modules: ', el('bdi', {}, gpu.layers)) : null, picture, measuredBars(gpu, whole));
}

const measuredKinds = [['peak_allocated_bytes', 'allocated'], ['peak_reserved_bytes', 'reserved'], ['device_used_bytes', 'on the device']];

function measuredBars(gpu, whole) {
  if (!gpu.measured) return null;
  const known = measuredKinds.filter(([key]) => typeof gpu.measured[key] === 'number');
  const predicted = {
    peak_allocated_bytes: [gpu.peak_bytes, gpu.peak_bytes], peak_reserved_bytes: [gpu.peak_bytes + slackOf(gpu)[0], gpu.peak_bytes + slackOf(gpu)[1]],
    device_used_bytes: [gpu.peak_bytes + gpu.overhead_bytes + slackOf(gpu)[0], gpu.peak_bytes + gpu.overhead_bytes + slackOf(gpu)[1]],
  };
  const rows = known.map(([key, name]) => {
    const value = gpu.measured[key];
    const [low, high] = predicted[key];
    const text = 'Measured ' + name + ' ' + bytes(value) + ', predicted ' + bytes(low) + (high > low ? '–' + bytes(high) : '');
    const picture = bar([{bytes: value, style: 'seen', title: text}], whole, text);
    const range = el('span', {class: 'range-mark', title: 'predicted'});
    range.style.left = (100 * low / whole) + '%';
    range.style.width = (100 * Math.max(high - low, whole / 400) / whole) + '%';
    picture.append(range);
    return el('div', {class: 'measured'}, el('span', {}, text), picture);
  });
  if (gpu.measured.note) rows.push(el('p', {class: 'quiet'}, gpu.measured.note));
  return rows;
}

function gpuColumns(gpus, used, measured) {
  const number = (head) => ({head, number: true});
  return [{head: 'GPU'}, {head: 'Model'}, ...used.map(([, label]) => number(label)), number('peak'), ...(data.peak_open ? [number('peak, lowest'), number('peak, highest')] : []), ...(gpus.some((gpu) => gpu.usual_peak_bytes) ? [number('usual peak')] : []), number(overhead()),
    number('allocator, lowest'), number('allocator, highest'), number('used on the device'), number('budget'), {head: 'Verdict'}, {head: 'Peak at'},
    ...(measured ? measuredKinds.map(([, name]) => number('measured: ' + name)) : [])];
}

function gpuRow(gpu, used, measured, usual) {
  return [gpuName(gpu), gpu.gpu, ...used.map(([index]) => gpu.bytes[index]), gpu.peak_bytes, ...(data.peak_open ? [0, 1].map((end) => listOf(gpu.peak_range_bytes)[end] ?? '') : []), ...(usual ? [gpu.usual_peak_bytes ?? ''] : []), gpu.overhead_bytes ?? '', ...slackOf(gpu),
    gpu.used_bytes ?? '', gpu.budget_bytes ?? '', gpu.verdict ?? '', gpu.peak_at ?? '',
    ...(measured ? measuredKinds.map(([key]) => (gpu.measured || {})[key] ?? 'not known') : [])];
}

// Contents by module: a strip for each GPU on one scale, and a table with all bytes.
function moduleFigure(gpus) {
  const filled = gpus.filter((gpu) => listOf(gpu.modules).length > 0);
  if (filled.length === 0) return null;
  const whole = Math.max(...filled.map((gpu) => sum(gpu.modules.map((module) => module.bytes))));
  const strip = (gpu) => {
    const total = sum(gpu.modules.map((module) => module.bytes));
    const pieces = gpu.modules.filter((module) => module.bytes > 0).map((module) => {
      const text = nameOf(module.name);
      const piece = el('span', {class: 'module', title: text + ', ' + bytes(module.bytes)}, module.bytes > whole / 40 ? el('bdi', {}, text) : null);
      piece.style.width = (100 * module.bytes / whole) + '%';
      return piece;
    });
    return el('li', {}, el('div', {class: 'head'}, el('strong', {}, gpuName(gpu)), el('span', {}, bytes(total) + ' in ' + gpu.modules.length + (gpu.modules.length === 1 ? ' module' : ' modules'))),
      el('div', {class: 'bar', role: 'img', 'aria-label': gpuName(gpu) + ': ' + gpu.modules.length + ' modules, ' + bytes(total)}, pieces));
  };
  let strips = el('ul', {class: 'bars'}, filled.map(strip));
  if (filled.length > 8) strips = el('details', {class: 'pictures'}, el('summary', {}, 'Contents of ' + filled.length + ' GPUs'), strips);
  const rows = () => filled.flatMap((gpu) => gpu.modules.map((module) => [gpuName(gpu), nameOf(module.name), module.units ?? '', bytes(module.bytes), module.bytes]));
  return el('figure', {}, el('figcaption', {}, el('h3', {}, 'Contents of each GPU by module'),
    el('p', {}, 'Memory that stays for the whole step: weights, gradients and states of the optimizer.')),
    strips,
    tableLater('Contents of each GPU by module', [{head: 'GPU'}, {head: 'Module'}, {head: 'Units', number: true}, {head: 'Size', number: true}, {head: 'Bytes', number: true}], rows));
}
