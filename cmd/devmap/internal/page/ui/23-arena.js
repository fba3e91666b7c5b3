// Map of the arena of devmap's engine: address × time. What has no buffer is idle.

function arenaFigures() {
  const arenas = data.arenas || {};
  const maps = listOf(arenas.maps);
  const notes = arenas.note ? [el('p', {}, arenas.note)] : [];
  if (maps.length === 0) return notes;
  const first = fullest();
  maps.sort((a, b) => (b.device === first) - (a.device === first) || a.device - b.device);
  const figures = maps.map((map, index) => arenaFigure(map, listOf(arenas.kinds), index));
  const heading = el('h3', {class: 'part-title'}, 'Arena of devmap’s engine: address and time');
  const nodes = [heading, ...notes, ...figures.slice(0, 1)];
  if (figures.length > 1) {
    nodes.push(el('details', {class: 'pictures'}, el('summary', {}, others(figures.length - 1, 'arena')), ...figures.slice(1)));
  }
  return nodes;
}

// A kind has the colour of its category, as in the bands. Kinds of one category differ in texture.
function inkOf(kind) {
  const all = data.arenas.categories;
  return all[kind] + colours * all.slice(0, kind).filter((category) => category === all[kind]).length;
}

function arenaFigure(map, kinds) {
  const {rects} = map;
  const count = rects.address.length;
  const seen = [...new Set(rects.kind)].sort((a, b) => a - b);
  const title = 'Arena of GPU ' + map.device;
  const columns = ['Buffer', 'Kind'].map((head) => ({head})).concat(['Address', 'Bytes', 'From', 'To'].map((head) => ({head, number: true})));
  const rows = () => rects.address.map((address, i) => [nameOf(rects.name[i]), kinds[rects.kind[i]] ?? '', address, rects.bytes[i], moment(rects.from[i]), moment(rects.to[i])]);
  const idleTable = map.idle ? tableLater('idle bytes of GPU ' + map.device, [{head: 'Time', number: true}, {head: 'Idle bytes', number: true}], () => map.idle.x.map((x, i) => [moment(x), map.idle.bytes[i]])) : null;
  const least = map.idle && map.idle.bytes.length ? ' At the fullest moment ' + bytes(map.idle.bytes.reduce((a, b) => Math.min(a, b))) + ' are idle.' : '';
  return figure(title, {
    height: 270, hint: 'Point at a buffer, or use the arrow keys.',
    note: bytes(map.size_bytes) + ' for ' + (map.joined || count) + ' buffers.' + least + (map.joined ? ' Buffers that touch are one box.' : ''),
    draw: (box, readout) => drawArena(map, kinds, box, readout, title),
    after: legend(seen.map((kind) => [inkOf(kind), kinds[kind]]), 'c', [['blank', 'idle']]),
    tables: [tableLater('buffers of ' + title, columns, rows), idleTable],
  });
}

function drawArena(map, kinds, box, readout, title) {
  const {rects} = map;
  const count = rects.address.length;
  const end = endOfTime();
  const stops = [...new Set([...rects.from, ...rects.to])].sort((a, b) => a - b);
  let address = map.size_bytes / 2;
  const at = (x, y) => {
    for (let i = count - 1; i >= 0; i--) {
      if (rects.from[i] <= x && x < rects.to[i] && rects.address[i] <= y && y < rects.address[i] + rects.bytes[i]) return i;
    }
    return -1;
  };
  const say = (x) => {
    const i = at(x, address);
    const idle = map.idle ? map.idle.bytes[Math.max(0, lastAtMost(map.idle.x, x))] : undefined;
    const where = moment(x) + ', address ' + bytes(Math.round(address)) + ': ';
    const what = i < 0 ? 'idle' : nameOf(rects.name[i]) + ' (' + (kinds[rects.kind[i]] ?? '') + '), ' + bytes(rects.bytes[i]) + ', ' + moment(rects.from[i]) + ' to ' + moment(rects.to[i]);
    readout.textContent = plain(where + what + (idle === undefined ? '' : '. Idle in the arena: ' + bytes(idle)));
  };
  chart(box, {
    group: 'time', label: title, height: 260, acrossY: true, x: momentAxis, y: byteAxis(map.size_bytes),
    data: [[0, end], [0, 0]], series: [{show: false}], domain: [0, end], ceiling: [0, map.size_bytes], stops,
    moved: (u, x) => {
      if (x === null) return;
      if (u.cursor.event && u.cursor.event.target === u.over && u.cursor.top >= 0) address = u.posToVal(u.cursor.top, 'y');
      say(x);
    },
    across: (u, direction) => {
      address = Math.max(0, Math.min(map.size_bytes - 1, address - direction * map.size_bytes / 64));
      u.setCursor({left: Math.max(0, u.cursor.left), top: u.valToPos(address, 'y')}, true, false);
      say(u.posToVal(u.cursor.left, 'x'));
    },
    draw: (u) => {
      const pen = u.ctx;
      clipped(u, () => {
        for (let kind = 0; kind < kinds.length; kind++) {
          pen.fillStyle = patternOf(pen, inkOf(kind), 'c');
          for (let i = 0; i < count; i++) {
            if (rects.kind[i] !== kind) continue;
            const left = u.valToPos(rects.from[i], 'x', true);
            const right = u.valToPos(rects.to[i], 'x', true);
            const top = u.valToPos(rects.address[i] + rects.bytes[i], 'y', true);
            const bottom = u.valToPos(rects.address[i], 'y', true);
            pen.fillRect(left, top, Math.max(right - left, 0.5), Math.max(bottom - top, 0.5));
            if (bottom - top > 6 && right - left > 6) outline(pen, left, top, right - left, bottom - top);
          }
        }
      });
      if (map.peak !== undefined) upright(u, map.peak, 'peak');
    },
  });
}

function outline(pen, left, top, width, height) {
  pen.strokeStyle = colour('edge');
  pen.lineWidth = 1;
  pen.strokeRect(left + 0.5, top + 0.5, width - 1, height - 1);
}

// clipped limits a drawing to the plot area.
function clipped(u, draw) {
  u.ctx.save();
  u.ctx.beginPath();
  u.ctx.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
  u.ctx.clip();
  draw();
  u.ctx.restore();
}

// upright marks a moment with a dashed line and its name.
function upright(u, x, name) {
  const left = u.valToPos(x, 'x', true);
  if (left < u.bbox.left || left > u.bbox.left + u.bbox.width) return;
  const pen = u.ctx;
  pen.save();
  pen.strokeStyle = pen.fillStyle = colour('text');
  pen.textAlign = 'left';
  pen.textBaseline = 'alphabetic';
  pen.setLineDash([4 * devicePixelRatio, 3 * devicePixelRatio]);
  pen.beginPath();
  pen.moveTo(left, u.bbox.top);
  pen.lineTo(left, u.bbox.top + u.bbox.height);
  pen.stroke();
  pen.font = 12 * devicePixelRatio + 'px system-ui, sans-serif';
  pen.fillText(name, left + 3 * devicePixelRatio, u.bbox.top - 2 * devicePixelRatio);
  pen.restore();
}
