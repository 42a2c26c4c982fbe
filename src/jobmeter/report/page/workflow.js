'use strict';
// The table of jobs: sorting, searching, and opening a job, which draws its curves.

const table = document.querySelector('table.jobs'), body = table.tBodies[0];
const rows = () => [...body.querySelectorAll('tr.job')];

for (const button of table.querySelectorAll('th button')) button.addEventListener('click', () => {
  const column = button.parentElement.cellIndex, falling = button.getAttribute('aria-sort') === 'ascending';
  for (const other of table.querySelectorAll('th button')) other.removeAttribute('aria-sort');
  button.setAttribute('aria-sort', falling ? 'descending' : 'ascending');
  const value = row => row.cells[column].dataset.value, sign = falling ? -1 : 1;
  const numeric = button.dataset.sort === 'number';
  body.append(...rows().sort((one, other) => {
    const [left, right] = [value(one), value(other)];
    if (left === '' || right === '') return (left === '') - (right === '');  // what is not known comes last
    return sign * (numeric ? left - right : left.localeCompare(right, undefined, {numeric: true}));
  }));
  show();
});

// Of very many jobs only the first are shown, in the order and of the selection that is chosen.
const more = document.getElementById('more'), PAGE = 50;
let most = PAGE;

function show() {
  const words = document.getElementById('search').value.toLowerCase(), over = document.getElementById('over').checked;
  body.querySelectorAll('tr.details').forEach(close);
  let fitting = 0;
  for (const row of rows()) {
    const fits = [1, 2].some(cell => row.cells[cell].dataset.value.toLowerCase().includes(words))
      && (!over || row.classList.contains('over'));
    fitting += fits;
    row.classList.toggle('hidden', !fits || fitting > most);
  }
  const all = rows().length, left = Math.max(fitting - most, 0);
  document.getElementById('shown').textContent = fitting < all ? `${fitting} of ${all} jobs` : '';
  more.classList.toggle('hidden', !left);
  more.textContent = `show ${left} more`;
}
document.getElementById('search').addEventListener('input', () => { most = PAGE; show(); });
document.getElementById('over').addEventListener('change', () => { most = PAGE; show(); });
more.addEventListener('click', () => { most = Infinity; show(); });
show();

function close(details) {
  details.querySelectorAll('[data-run]').forEach(place => { drawn.delete(place); Plotly.purge(place); });
  details.remove();
}

function element(name, text, attributes = {}) {
  const made = document.createElement(name);
  if (text) made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function open(row) {
  const number = row.id.slice(4), job = page.jobs[number];
  const details = element('tr', '', {class: 'details', id: `details-${number}`});
  const cell = details.appendChild(element('td', '', {colspan: row.cells.length}));
  if (job.command) cell.append(element('pre', job.command));
  if (job.reason) cell.append(element('p', job.reason));
  const several = job.attempts.length > 1, charts = [];
  for (const [run, attempt, ending, seconds] of job.attempts) {
    const words = `${several ? `attempt ${attempt}: ` : ''}${ending} after ${amount(seconds, 'seconds')} · run ${run}`;
    cell.append(element('p', words));
    if (byId.has(run)) charts.push(cell.appendChild(element('div', '', {'data-run': run})));
  }
  if (!job.attempts.length) cell.append(element('p', 'It was not run.'));
  row.after(details);
  charts.forEach(draw);
}

function toggle(row) {
  const details = document.getElementById(`details-${row.id.slice(4)}`);
  if (details) close(details); else open(row);
}

body.addEventListener('click', event => {
  const button = event.target.closest('button.open');
  if (button) toggle(button.closest('tr'));
});
document.querySelectorAll('.timeline a').forEach(bar => bar.addEventListener('click', event => {
  event.preventDefault();
  const row = document.querySelector(bar.getAttribute('href'));
  row.classList.remove('hidden');
  if (!document.getElementById(`details-${row.id.slice(4)}`)) open(row);
  row.scrollIntoView({block: 'center'});
}));

const inner = document.querySelector('.inner');
document.querySelectorAll('[data-zoom]').forEach(button => button.addEventListener('click', () => {
  const zoom = Number(inner.style.getPropertyValue('--zoom') || 1) * Number(button.dataset.zoom);
  inner.style.setProperty('--zoom', Math.min(Math.max(zoom, 1), 64));
}));
