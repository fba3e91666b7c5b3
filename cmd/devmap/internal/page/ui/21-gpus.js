// Bars of each GPU by category against its budget, with the allocator's range and, after
// a run, the measured memory. Under each bar are the contents by module.

let categories = [];
const overhead = () => data.overhead || 'CUDA context';
const gpuName = (gpu) => 'GPU ' + gpu.device;

// GPUs that differ in nothing but their number share a picture: [[the first, its name]].
function alike(gpus, alone) {
  const kinds = new Map();
  for (const gpu of gpus) {
    const key = JSON.stringify({...gpu, device: 0, memory: 0, modules: alone(gpu)});
    kinds.set(key, [...(kinds.get(key) || []), gpu]);
  }
  return [...kinds.values()].map((kind) => [kind[0], namesOf(kind.map((gpu) => gpu.device))]);
}

// Names of GPUs: "GPUs 0–3, 6".
function namesOf(devices) {
  if (devices.length === 1) return 'GPU ' + devices[0];
  const runs = [];
  for (const device of devices) {
    const last = runs[runs.length - 1];
    if (last && last[1] === device - 1) last[1] = device;
    else runs.push([device, device]);
  }
  return 'GPUs ' + runs.map(([from, to]) => (from === to ? from : from + '–' + to)).join(', ');
}

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
  const capacity = Math.max(...gpus.map((gpu) => Math.max(gpu.capacity_bytes || 0, highest(gpu))));
  const most = Math.max(...gpus.map(highest));
  const small = most > 0 && most < capacity / 10; // else the bars are slivers
  const whole = small ? 1.1 * most : capacity;
  const kinds = alike(gpus, () => 0);
  const note = small ? 'The bars end at ' + bytes(whole) + ', ' + percent(whole, capacity) + ' of a GPU. The budget is beyond them.' : '';
  return el('figure', {}, el('figcaption', {}, el('h3', {}, title), note ? el('p', {}, note) : null, legend(used, 'c', small ? marks.filter(([style]) => style !== 'budget') : marks)),
    el('ul', {class: 'bars'}, kinds.map(([gpu, name]) => gpuBar(gpu, name, whole))),
    tableLater(title + ', bytes', gpuColumns(gpus, used, measured), () => gpus.map((gpu) => gpuRow(gpu, used, measured, gpus.some((one) => one.usual_peak_bytes), gpus.some((one) => one.host_bytes)))));
}

function highest(gpu) {
  const measured = gpu.measured || {};
  return Math.max(gpu.peak_bytes + (gpu.overhead_bytes || 0) + slackOf(gpu)[1], measured.device_used_bytes || 0, measured.peak_reserved_bytes || 0);
}

function gpuBar(gpu, name, whole) {
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
    (high > 0 ? '; allocator up to ' + bytes(used + high) : '') + (gpu.host_bytes ? '; ' + bytes(gpu.host_bytes) + ' of activations in host memory' : '');
  const label = name + ': ' + text;
  const picture = bar(parts, whole, label);
  const mark = el('span', {class: 'budget-mark', title: 'budget ' + bytes(budget)});
  mark.style.left = (100 * budget / whole) + '%';
  if (budget <= whole) picture.append(mark);
  const verdict = {fits: '✓ fits', tight: '! tight', no: '✗ does not fit'}[gpu.verdict] || gpu.verdict;
  return el('li', {}, el('div', {class: 'head'},
    el('strong', {}, name), el('bdi', {class: 'quiet'}, gpu.gpu),
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
  return [{head: 'GPU'}, {head: 'Model'}, ...used.map(([, label]) => number(label)), number('peak'), ...(data.peak_open ? [number('peak, lowest'), number('peak, highest')] : []), ...(gpus.some((gpu) => gpu.usual_peak_bytes) ? [number('usual peak')] : []), ...(gpus.some((gpu) => gpu.host_bytes) ? [number('in host memory')] : []), number(overhead()),
    number('allocator, lowest'), number('allocator, highest'), number('used on the device'), number('budget'), {head: 'Verdict'}, {head: 'Peak at'},
    ...(measured ? measuredKinds.map(([, name]) => number('measured: ' + name)) : [])];
}

function gpuRow(gpu, used, measured, usual, host) {
  return [gpuName(gpu), gpu.gpu, ...used.map(([index]) => gpu.bytes[index]), gpu.peak_bytes, ...(data.peak_open ? [0, 1].map((end) => listOf(gpu.peak_range_bytes)[end] ?? '') : []), ...(usual ? [gpu.usual_peak_bytes ?? ''] : []), ...(host ? [gpu.host_bytes ?? 0] : []), gpu.overhead_bytes ?? '', ...slackOf(gpu),
    gpu.used_bytes ?? '', gpu.budget_bytes ?? '', gpu.verdict ?? '', gpu.peak_at ?? '',
    ...(measured ? measuredKinds.map(([key]) => (gpu.measured || {})[key] ?? 'not known') : [])];
}

// Contents by module: a strip for each GPU on one scale, and a table with all bytes.
function moduleFigure(gpus) {
  const filled = gpus.filter((gpu) => listOf(gpu.modules).length > 0);
  if (filled.length === 0) return null;
  const whole = Math.max(...filled.map((gpu) => sum(gpu.modules.map((module) => module.bytes))));
  const kinds = alike(filled, (gpu) => gpu.modules);
  const strip = ([gpu, name]) => {
    const total = sum(gpu.modules.map((module) => module.bytes));
    const pieces = gpu.modules.filter((module) => module.bytes > 0).map((module) => {
      const text = nameOf(module.name);
      const piece = el('span', {class: 'module', title: text + ', ' + bytes(module.bytes)}, module.bytes > whole / 40 ? el('bdi', {}, text) : null);
      piece.style.width = (100 * module.bytes / whole) + '%';
      return piece;
    });
    return el('li', {}, el('div', {class: 'head'}, el('strong', {}, name), el('span', {}, bytes(total) + ' in ' + gpu.modules.length + (gpu.modules.length === 1 ? ' box' : ' boxes'))),
      el('div', {class: 'bar', role: 'img', 'aria-label': name + ': ' + gpu.modules.length + ' boxes, ' + bytes(total)}, pieces));
  };
  let strips = el('ul', {class: 'bars'}, kinds.map(strip));
  if (kinds.length > 8) strips = el('details', {class: 'pictures'}, el('summary', {}, 'Contents of ' + filled.length + ' GPUs'), strips);
  const rows = () => filled.flatMap((gpu) => gpu.modules.map((module) => [gpuName(gpu), nameOf(module.name), module.units ?? '', bytes(module.bytes), module.bytes]));
  return el('figure', {}, el('figcaption', {}, el('h3', {}, 'Contents of each GPU by module'),
    el('p', {}, 'Memory that is there for the whole step: weights, states of the optimizer, buffers of libraries. Gradients count if they are there throughout. A box has a module or a run of blocks; the table names the small ones.')),
    strips,
    tableLater('Contents of each GPU by module', [{head: 'GPU'}, {head: 'Module'}, {head: 'Units', number: true}, {head: 'Size', number: true}, {head: 'Bytes', number: true}], rows));
}
