// Colours with a texture each, so that no picture depends on colour alone. CSS has the
// colours for light, dark and paper.

const textures = ['plain', 'rising', 'dots', 'level', 'falling', 'grid', 'upright'];
const colours = 8;
const tiles = new Map();

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();

// Tile of 8 × 8 points in the colour of a class, with the lines of its texture.
function tile(index, family) {
  const fill = colour(family + (index % colours));
  const texture = textures[(index + 2 * Math.floor(index / colours)) % textures.length];
  const key = fill + texture;
  if (tiles.has(key)) return tiles.get(key);
  const canvas = document.createElement('canvas');
  canvas.width = canvas.height = 8;
  const pen = canvas.getContext('2d');
  pen.fillStyle = fill;
  pen.fillRect(0, 0, 8, 8);
  pen.strokeStyle = pen.fillStyle = colour('texture');
  const line = (...points) => {
    pen.beginPath();
    for (let i = 0; i < points.length; i += 4) {
      pen.moveTo(points[i], points[i + 1]);
      pen.lineTo(points[i + 2], points[i + 3]);
    }
    pen.stroke();
  };
  if (texture === 'rising') line(-1, 9, 9, -1, -1, 1, 1, -1, 7, 9, 9, 7);
  if (texture === 'falling') line(-1, -1, 9, 9, 7, -1, 9, 1, -1, 7, 1, 9);
  if (texture === 'level' || texture === 'grid') line(0, 4, 8, 4);
  if (texture === 'upright' || texture === 'grid') line(4, 0, 4, 8);
  if (texture === 'dots') [[1, 1], [5, 5]].forEach(([x, y]) => pen.fillRect(x, y, 2, 2));
  const made = {canvas, url: 'url(' + canvas.toDataURL() + ')'};
  tiles.set(key, made);
  return made;
}

const patternOf = (pen, index, family) => pen.createPattern(tile(index, family).canvas, 'repeat');

// Elements that show a colour get it again when light, dark or paper changes.
let painted = [];

function paint(node, index, family) {
  const apply = () => { node.style.backgroundImage = tile(index, family).url; };
  painted.push(apply);
  apply();
  return node;
}

function legend(names, family, extra) {
  const entries = names.map(([index, name]) => el('li', {}, paint(el('span', {class: 'key'}), index, family), name));
  return el('ul', {class: 'legend', 'aria-label': 'Colours'}, entries, listOf(extra).map(([style, name]) =>
    el('li', {}, el('span', {class: 'key ' + style}), name)));
}

// bar is a row of parts on a scale: [{bytes, index, family, style, title}].
function bar(parts, whole, label) {
  const node = el('div', {class: 'bar', role: 'img', 'aria-label': label});
  for (const part of parts) {
    if (!(part.bytes > 0)) continue;
    const piece = el('span', {class: 'part ' + (part.style || ''), title: part.title});
    piece.style.width = (100 * part.bytes / whole) + '%';
    if (part.family) paint(piece, part.index, part.family);
    node.append(piece);
  }
  return node;
}
