// Memory over the step: stacked bands of each GPU. The peak is a button: it lists the
// live buffers, whose sum is the peak to the byte.

const many = 4;
const others = (count, what) => (count === 1 ? 'The other ' + what : 'The other ' + count + ' ' + what + 's');

function memorySection() {
  const curves = listOf(data.memory);
  const node = section('memory', 'Memory over the step');
  if (data.memory_note) node.append(el('p', {}, data.memory_note));
  if (curves.length === 0) return data.memory_note ? undefined : node.append(el('p', {}, 'The plan has no memory over the step.'));
  const order = curves.map((curve, index) => index).sort((a, b) => share(curves[b]) - share(curves[a]) || a - b);
  const figures = (indexes) => indexes.map((index) => curveFigure(curves[index], index));
  if (curves.length <= many) return node.append(...figures(curves.map((_, index) => index)));
  node.append(el('p', {}, 'The fullest comes first.'), ...figures(order.slice(0, 1)));
  const rest = el('details', {class: 'pictures'}, el('summary', {}, others(curves.length - 1, 'picture')));
  rest.append(...figures(order.slice(1).sort((a, b) => a - b)));
  return node.append(rest);
}

const share = (curve) => (curve.budget_bytes ? curve.total[curve.peak] / curve.budget_bytes : curve.total[curve.peak]);

// The GPU whose picture comes first.
function fullest() {
  const curves = listOf(data.memory).filter((curve) => listOf(curve.devices).length > 0);
  if (curves.length === 0) return 0;
  return curves.reduce((best, curve) => (share(curve) > share(best) ? curve : best)).devices[0];
}

// All pictures with a time axis end at the same moment.
function endOfTime() {
  const ends = listOf(data.memory).filter((curve) => curve.axis === 'time').map((curve) => curve.x[curve.x.length - 1]);
  const maps = data.arenas ? listOf(data.arenas.maps).map((map) => map.makespan) : [];
  return Math.max(1, data.time ? data.time.makespan : 0, ...maps, ...ends);
}

function curveFigure(curve, index) {
  const title = curve.title || 'GPUs ' + listOf(curve.devices).join(', ');
  const peak = curve.total[curve.peak];
  const live = el('div', {class: 'live', id: 'live-' + index, role: 'group', 'aria-label': 'Peak of ' + title, tabindex: '-1', hidden: true});
  const shown = curve.bands.map((band) => [band.category, categories[band.category].label]);
  const where = nameOf(curve.label && curve.label[curve.peak]);
  const summary = 'Peak ' + bytes(peak) + (where ? ': ' + where : '') + '.';
  const points = curve.moments > curve.x.length ? ' The picture has ' + curve.x.length + ' of ' + curve.moments + ' moments: the least and the most of each part.' : '';
  const open = (focus) => openLive(curve, live, title, focus);
  const button = el('button', {type: 'button', class: 'peak-list', 'aria-controls': live.id}, 'List the live buffers at the peak');
  button.addEventListener('click', () => open(true));
  const picture = figure(title, {
    height: 260, note: [summary, curve.note, points].filter(Boolean).join(' '),
    draw: (box, readout) => drawCurve(curve, box, readout, title, open),
    after: [legend(shown, 'c'), button, live], tables: curveTable(curve, title),
  });
  return picture;
}

function drawCurve(curve, box, readout, title, open) {
  // The last value lasts to the end of the axis.
  const end = curve.axis === 'time' ? endOfTime() : curve.x[curve.x.length - 1] + 1;
  const x = [...curve.x, end];
  const longer = curve.bands.map((band) => (band.bytes ? {...band, bytes: [...band.bytes, band.bytes[band.bytes.length - 1]]} : band));
  const {columns, series} = stacked(x.length, longer, 'c');
  const peak = curve.total[curve.peak];
  const near = curve.budget_bytes && curve.budget_bytes < 2.5 * peak;
  const text = (at) => {
    const label = nameOf(curve.label && curve.label[at]);
    const parts = curve.bands.map((band) => [categories[band.category].label, band.bytes ? band.bytes[at] : band.constant]).filter(([, value]) => value > 0);
    return [curve.axis === 'time' ? moment(curve.x[at]) : curve.x.length > 1 ? 'moment ' + curve.x[at] : '', label].filter(Boolean).join(', ') + ': ' + bytes(curve.total[at]) +
      ' (' + parts.map(([name, value]) => name + ' ' + bytes(value)).join(', ') + ')';
  };
  const marker = el('button', {type: 'button', class: 'peak', 'aria-label': 'Peak of ' + title + ', ' + bytes(peak) + ': list the live buffers'}, '◆');
  marker.addEventListener('click', (event) => { event.stopPropagation(); open(true); });
  const atPeak = (u) => Math.abs(u.valToPos(curve.x[curve.peak], 'x') - u.cursor.left) < 8;
  const u = chart(box, {
    group: curve.axis === 'time' ? 'time' : undefined, label: 'Memory of ' + title, height: 250,
    data: [x, ...columns], series, x: curve.axis === 'time' ? momentAxis : orderAxis(curve), y: byteAxis(near ? curve.budget_bytes : peak),
    start: curve.x[curve.peak], domain: [Math.min(0, curve.x[0]), end], ceiling: [0, 1.1 * (near ? Math.max(peak, curve.budget_bytes) : peak)], stops: curve.x,
    moved: (_, value) => {
      const at = value === null ? -1 : lastAtMost(curve.x, value);
      if (at >= 0) readout.textContent = text(at);
    },
    draw: (chart) => {
      if (near) levelLine(chart, curve.budget_bytes, 'budget ' + bytes(curve.budget_bytes));
      placeMarker(chart, marker, curve);
    },
    selected: (chart) => { if (atPeak(chart)) open(true); },
    clicked: (chart) => { if (atPeak(chart)) open(false); },
  });
  marker.tabIndex = -1;
  u.over.append(marker);
  placeMarker(u, marker, curve);
  readout.textContent = 'At the peak: ' + text(curve.peak);
}

// Few moments have their names at the axis, as phases do.
function orderAxis(curve) {
  if (curve.x.length > 6 || !curve.label) return countAxis;
  return {
    splits: () => curve.x.map((x) => x + 0.5), grid: {show: false}, ticks: {show: false},
    values: (u) => curve.label.map((label) => fitting(plain(nameOf(label)), u.bbox.width / devicePixelRatio / curve.x.length)),
  };
}

function placeMarker(u, marker, curve) {
  const [left, top] = [u.valToPos(curve.x[curve.peak], 'x'), u.valToPos(curve.total[curve.peak], 'y')];
  marker.hidden = !(left >= -1 && left <= u.over.clientWidth + 1);
  marker.style.left = left + 'px';
  marker.style.top = top + 'px';
}

function openLive(curve, box, title, focus) {
  if (box.childElementCount === 0) {
    const peak = curve.total[curve.peak];
    const where = nameOf(curve.label && curve.label[curve.peak]);
    box.append(el('p', {}, 'Peak: ', el('output', {class: 'peak-bytes'}, String(peak)), ' bytes (' + bytes(peak) + ')', where ? [', ', el('bdi', {}, where)] : null));
    const live = listOf(curve.live);
    const rows = live.map((row) => [nameOf(row.name), row.what ? nameOf(row.what) : '', categories[row.category] ? categories[row.category].label : '', row.count ?? 1, bytes(row.bytes), row.bytes]);
    const number = (head) => ({head, number: true});
    box.append(table('Live buffers at the peak of ' + title, [{head: 'Module'}, {head: 'Content'}, {head: 'Category'}, number('Buffers'), number('Size'), number('Bytes')], rows,
      ['Sum', '', '', sum(live.map((row) => row.count ?? 1)), bytes(sum(live.map((row) => row.bytes))), sum(live.map((row) => row.bytes))]));
  }
  box.hidden = false;
  if (focus) box.focus();
}

function curveTable(curve, title) {
  const number = (head) => ({head, number: true});
  const columns = [{head: curve.axis === 'time' ? 'Time' : 'Moment'}, {head: 'What runs'}, ...curve.bands.map((band) => number(categories[band.category].label)), number('Sum')];
  return tableLater('memory of ' + title + ', bytes', columns, () => curve.x.map((x, at) => [
    curve.axis === 'time' ? moment(x) : x, nameOf(curve.label && curve.label[at]), ...curve.bands.map((band) => (band.bytes ? band.bytes[at] : band.constant)), curve.total[at]]));
}
