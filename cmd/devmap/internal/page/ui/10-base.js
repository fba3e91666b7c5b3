'use strict';
// Parts that all pictures share. Outside text reaches the page only through text nodes
// and attributes, never as markup.

const pages = [JSON.parse(document.getElementById('devmap-data').textContent)];
pages.push(...(pages[0].others || []));
let data = pages[0];

// Characters that are invisible or turn the direction of text appear as \uXXXX.
const invisible = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;

function plain(text) {
  return String(text).replace(invisible, (sign) => '\\u' + sign.charCodeAt(0).toString(16).padStart(4, '0'));
}

function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    node.setAttribute(key, value === true ? '' : plain(value));
  }
  for (const child of children.flat()) {
    if (child === undefined || child === null || child === '') continue;
    node.append(child instanceof Node ? child : plain(child));
  }
  return node;
}

const nameOf = (index) => (typeof index === 'number' ? (data.names || [])[index] ?? '' : index ?? '');
const listOf = (value) => (Array.isArray(value) ? value : []);
const sum = (values) => values.reduce((total, value) => total + value, 0);

const binaryUnits = [['TiB', 2 ** 40], ['GiB', 2 ** 30], ['MiB', 2 ** 20], ['KiB', 2 ** 10], ['B', 1]];

// Unit of a value in bytes. Up to 2 TiB are GiB, as in devmap's tables.
function unitOf(bytes) {
  const size = Math.abs(bytes);
  return binaryUnits.find(([name, unit]) => size >= unit * (name === 'TiB' ? 2 : 1)) || ['B', 1];
}

function bytes(value) {
  if (value === undefined || value === null) return 'not known';
  const [name, unit] = unitOf(value);
  return (unit === 1 ? String(value) : (value / unit).toFixed(2)) + ' ' + name;
}

function seconds(value) {
  if (value === undefined || value === null) return 'not known';
  const size = Math.abs(value);
  if (size >= 1 || size === 0) return Number(value.toPrecision(4)) + ' s';
  if (size >= 1e-3) return Number((value * 1e3).toPrecision(4)) + ' ms';
  return Number((value * 1e6).toPrecision(4)) + ' µs';
}

// Length on the time axis, which counts nanoseconds or forward passes.
function moment(value) {
  if (!data.time || data.time.unit !== 'forward') return seconds(value / 1e9);
  return Number(value.toPrecision(4)) + (value === 1 ? ' forward pass' : ' forward passes');
}

const percent = (part, whole) => (whole > 0 ? (100 * part / whole).toFixed(1) + '%' : 'not known');

// Index of the last value that is at most x, in ascending values; -1 before the first.
function lastAtMost(values, x) {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= x) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

function section(id, title, ...children) {
  const main = document.getElementById('main');
  const heading = el('h2', {id: id + '-title'}, title);
  const node = el('section', {id, 'aria-labelledby': id + '-title', tabindex: '-1'}, heading, ...children);
  main.append(node);
  document.getElementById('sections').append(el('a', {href: '#' + id}, title));
  return node;
}

// The command or value with a button that copies it.
function copied(text, what) {
  const words = String(text).split(/( )/).map((word) => (word.startsWith('-') && word.length < 40 ? el('span', {class: 'flag'}, word) : word));
  const code = el('code', {}, words);
  const button = el('button', {type: 'button', class: 'copy', 'aria-label': 'Copy ' + what}, 'Copy');
  const answer = (said) => {
    button.textContent = said;
    setTimeout(() => { button.textContent = 'Copy'; }, 1500);
  };
  const select = () => {
    const range = document.createRange();
    range.selectNodeContents(code);
    const selection = window.getSelection();
    selection.removeAllRanges();
    selection.addRange(range);
    answer('Selected');
  };
  button.addEventListener('click', () => {
    if (!navigator.clipboard) return select();
    return navigator.clipboard.writeText(text).then(() => answer('Copied'), select);
  });
  return el('span', {class: 'command'}, code, button);
}

// A real table. A column is {head, number, node}; rows are lists of values or nodes.
function table(caption, columns, rows, foot) {
  const cell = (value, index) => {
    const attributes = columns[index].number ? {class: 'number'} : {};
    if (index === 0) return el('th', {scope: 'row', ...attributes}, value instanceof Node ? value : el('bdi', {}, value));
    return el('td', attributes, value instanceof Node ? value : el('bdi', {}, value));
  };
  const head = el('tr', {}, columns.map((column) => el('th', {scope: 'col', class: column.number ? 'number' : undefined}, column.head)));
  const node = el('table', {}, el('caption', {}, caption), el('thead', {}, head),
    el('tbody', {}, rows.map((row) => el('tr', {}, row.map(cell)))));
  if (foot) node.append(el('tfoot', {}, el('tr', {}, foot.map(cell))));
  return el('div', {class: 'scroll', role: 'region', 'aria-label': caption, tabindex: '0'}, node);
}

// A table that a click opens. It is built then: large plans have many.
function tableLater(caption, columns, rows, foot) {
  const details = el('details', {class: 'table'}, el('summary', {}, 'Table: ' + caption));
  details.addEventListener('toggle', () => {
    if (details.open && details.childElementCount === 1) details.append(table(caption, columns, rows(), foot && foot()));
  });
  return details;
}

// Pictures draw when they come near the screen, or all before printing.
const pending = new Map();
const drawNow = (node) => {
  const draw = pending.get(node);
  pending.delete(node);
  if (draw) draw(node);
};
const nearScreen = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (!entry.isIntersecting) continue;
    nearScreen.unobserve(entry.target);
    drawNow(entry.target);
  }
}, {rootMargin: '400px'});

function drawLater(node, draw) {
  pending.set(node, draw);
  nearScreen.observe(node);
  return node;
}

// figure is a picture with its heading, its text of the cursor and its table.
function figure(title, {height, draw, note, hint, after, tables}) {
  const plot = el('div', {class: 'plot'});
  const readout = el('p', {class: 'readout', 'aria-live': 'polite'}, hint || '');
  plot.style.minHeight = height + 'px';
  drawLater(plot, () => draw(plot, readout));
  return el('figure', {}, el('figcaption', {}, el('h3', {}, title), note ? el('p', {}, note) : null), plot, readout, after, tables);
}
