// A chart of uPlot with keys, one cursor and one zoom for each group of charts.

const charts = new Set();
const groups = new Map(); // group → {range, charts}

// Steps of axes in bytes: parts and multiples of a binary unit.
function byteAxis(most) {
  const [, unit] = unitOf(most);
  const steps = [];
  for (let power = -3; power < 6; power++) for (const step of [1, 2, 5]) steps.push(step * 10 ** power * unit);
  return {
    incrs: steps,
    values: (_, splits) => splits.map((value) => Number((value / unit).toPrecision(6)) + ' ' + unitOf(most)[0]),
  };
}

const momentAxis = {values: (_, splits) => splits.map((value) => (data.time && data.time.unit === 'forward' ? String(value) : seconds(value / 1e9))), space: 70};
const secondAxis = {values: (_, splits) => splits.map((value) => seconds(value)), space: 70};
const countAxis = {values: (_, splits) => splits.map((value) => (Number.isInteger(value) ? String(value) : ''))};

function axis(given) {
  return {
    stroke: () => colour('text'), font: '12px system-ui, sans-serif',
    grid: {stroke: () => colour('line'), width: 1}, ticks: {stroke: () => colour('line'), width: 1}, ...given,
  };
}

// chart makes a chart in a box. options: {group, label, height, data, series, x, y,
// domain: [from, to], start of the cursor, ceiling, draw(u), moved(u, x), stops, selected(u)}.
function chart(box, options) {
  const group = options.group || options;
  const members = groups.get(group) || {range: null, charts: new Set()};
  groups.set(group, members);
  const domain = () => members.range || options.domain;
  const u = new uPlot({
    width: widthOf(box), height: options.height, legend: {show: false}, padding: [12, 22, 0, 0],
    scales: {x: {time: false, range: (_, low, high) => (members.range ? [low, high] : options.domain)}, y: {range: () => options.ceiling}},
    axes: [axis({size: 34, ...(options.x || momentAxis)}), axis({...options.y, size: options.group === 'time' ? leftOfTime() : 64})],
    series: [{}, ...options.series],
    cursor: {
      drag: {x: true, y: false, setScale: false}, points: {show: false}, y: Boolean(options.acrossY),
      ...(options.group ? {sync: {key: String(options.group), scales: ['x', null]}} : {}),
    },
    hooks: {
      draw: options.draw ? [options.draw] : [],
      setCursor: [(chart) => options.moved && options.moved(chart, chart.cursor.left >= 0 ? chart.posToVal(chart.cursor.left, 'x') : null)],
      setSelect: [(chart) => {
        const {left, width} = chart.select;
        if (width > 4) zoom(members, chart.posToVal(left, 'x'), chart.posToVal(left + width, 'x'), options.domain);
        chart.setSelect({left: 0, top: 0, width: 0, height: 0}, false);
      }],
    },
  }, options.data, box);
  u.over.addEventListener('dblclick', () => zoom(members, null, null, options.domain));
  u.over.addEventListener('click', (event) => { if (options.clicked) options.clicked(u, event); });
  u.setScale('x', {min: domain()[0], max: domain()[1]});
  box.setAttribute('tabindex', '0');
  box.setAttribute('role', 'group');
  box.setAttribute('aria-label', plain(options.label) + '. Arrow keys move the cursor, + and − zoom, 0 shows all.');
  box.addEventListener('keydown', (event) => keys(event, u, members, options));
  new ResizeObserver(() => fit(u, box)).observe(box);
  u.box = box;
  u.wholeRange = options.domain;
  members.charts.add(u);
  charts.add(u);
  return u;
}

const widthOf = (box) => Math.max(200, Math.floor(box.clientWidth));
const fit = (u, box) => { if (Math.abs(u.width - widthOf(box)) > 1) u.setSize({width: widthOf(box), height: u.height}); };

function zoom(members, from, to, domain) {
  const whole = from === null || to - from >= (domain[1] - domain[0]) * 0.999;
  members.range = whole ? null : [Math.max(domain[0], from), Math.min(domain[1], to)];
  const values = [...members.charts].map((u) => [u, u.cursor.left >= 0 ? u.posToVal(u.cursor.left, 'x') : null]);
  for (const [u] of values) {
    const [min, max] = members.range || u.wholeRange;
    u.setScale('x', {min, max});
  }
  // The scale changes after this call; the cursor then goes back to its value.
  queueMicrotask(() => values.forEach(([u, value]) => { if (value !== null && value >= u.scales.x.min && value <= u.scales.x.max) u.setCursor({left: u.valToPos(value, 'x'), top: u.cursor.top}, false, false); }));
}

function moveCursor(members, u, x) {
  const [min, max] = [u.scales.x.min, u.scales.x.max];
  const place = () => members.charts.forEach((each) => each.setCursor({left: each.valToPos(x, 'x'), top: each.cursor.top >= 0 ? each.cursor.top : each.over.clientHeight / 2}, true, false));
  if (x >= min && x <= max) return place();
  zoom(members, x - (max - min) / 2, x + (max - min) / 2, u.wholeRange);
  return queueMicrotask(place);
}

function keys(event, u, members, options) {
  if (event.target !== u.box || event.ctrlKey || event.metaKey || event.altKey) return;
  const stops = options.stops || options.data[0];
  const left = u.cursor.left >= 0 ? u.posToVal(u.cursor.left, 'x') : Math.min(Math.max(options.start ?? u.scales.x.min, u.scales.x.min), u.scales.x.max);
  const [min, max] = [u.scales.x.min, u.scales.x.max];
  const step = (count) => {
    const at = lastAtMost(stops, left + (max - min) * 1e-6);
    moveCursor(members, u, stops[Math.max(0, Math.min(stops.length - 1, at + count))]);
  };
  const closer = (factor) => {
    const half = (max - min) * factor / 2;
    const middle = Math.min(Math.max(left, options.domain[0] + half), options.domain[1] - half);
    zoom(members, middle - half, middle + half, options.domain);
  };
  const actions = {
    ArrowRight: () => step(event.shiftKey ? 10 : 1), ArrowLeft: () => step(event.shiftKey ? -10 : -1),
    Home: () => moveCursor(members, u, stops[0]), End: () => moveCursor(members, u, stops[stops.length - 1]),
    '+': () => closer(0.5), '=': () => closer(0.5), '-': () => closer(2), '−': () => closer(2),
    0: () => zoom(members, null, null, options.domain), Escape: () => zoom(members, null, null, options.domain),
    ...(options.selected ? {Enter: () => options.selected(u)} : {}),
    ...(options.across ? {ArrowUp: () => options.across(u, -1), ArrowDown: () => options.across(u, 1)} : {}),
  };
  if (!actions[event.key]) return;
  event.preventDefault();
  actions[event.key]();
}

// Stacked steps: bands in order from the bottom, each a list of values or one constant.
// The band on top is first in the drawing, and the bands below cover it.
function stacked(length, bands, family) {
  const totals = [];
  let below = new Array(length).fill(0);
  for (const band of bands) {
    below = below.map((value, i) => value + (band.bytes ? band.bytes[i] ?? band.bytes[length - 2] : band.constant));
    totals.push({index: band.category, values: below});
  }
  totals.reverse();
  return {
    columns: totals.map((band) => band.values),
    series: totals.map((band) => ({
      stroke: () => colour('edge'), width: 1, points: {show: false}, paths: uPlot.paths.stepped({align: 1}),
      fill: (u) => patternOf(u.ctx, band.index, family),
    })),
  };
}

// A dashed line over the chart with its name.
function levelLine(u, value, name) {
  const y = u.valToPos(value, 'y', true);
  if (y < u.bbox.top || y > u.bbox.top + u.bbox.height) return;
  const pen = u.ctx;
  pen.save();
  pen.strokeStyle = pen.fillStyle = colour('budget');
  pen.lineWidth = 2 * devicePixelRatio;
  pen.textAlign = 'left';
  pen.textBaseline = 'alphabetic';
  pen.setLineDash([6 * devicePixelRatio, 4 * devicePixelRatio]);
  pen.beginPath();
  pen.moveTo(u.bbox.left, y);
  pen.lineTo(u.bbox.left + u.bbox.width, y);
  pen.stroke();
  pen.font = 12 * devicePixelRatio + 'px system-ui, sans-serif';
  const left = u.bbox.left + 6 * devicePixelRatio;
  if (!name) return pen.restore();
  const ink = pen.fillStyle;
  pen.fillStyle = colour('page');
  pen.fillRect(left - 3, y - 17 * devicePixelRatio, pen.measureText(name).width + 6, 15 * devicePixelRatio);
  pen.fillStyle = ink;
  pen.fillText(name, left, y - 6 * devicePixelRatio);
  pen.restore();
}

// Light, dark and paper: the colours come from CSS and pictures draw again.
function repaint() {
  painted.forEach((apply) => apply());
  charts.forEach((u) => u.redraw(false, true));
}

function paper(on) {
  document.documentElement.classList.toggle('paper', on);
  if (on) for (const node of [...pending.keys()]) drawNow(node);
  document.querySelectorAll('details.pictures').forEach((node) => { if (on) node.open = true; });
  charts.forEach((u) => fit(u, u.box));
  repaint();
}
