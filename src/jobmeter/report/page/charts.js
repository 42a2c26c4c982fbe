'use strict';
// Draws the curves of runs. The page has them as compact data (`curve_data.py`); figures are made here, when they come
// near the window, so that they suit its width and its colours.

const page = JSON.parse(document.getElementById('data').textContent);
const byId = new Map((page.runs || []).map(run => [run.id, run]));
const NARROW = 640;
const FEWEST = 240;  // points of a curve: so that the pointer finds a value wherever it is

// --- numbers for people, as `units.text` and `units.scale` write them ---

const BYTES = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
const STEPS = {
  bytes: BYTES.map((name, power) => [1024 ** power, name]),
  seconds: [[1, 's'], [60, 'min'], [3600, 'h'], [86400, 'd']], percent: [[1, '%']], count: [[1, '']],
};
const SYMBOLS = {joules: 'J', watts: 'W', celsius: '°C'};
const plain = (value, digits) => String(Number(value.toPrecision(digits)));
const grouped = (value, digits = 0) =>
  value.toLocaleString('en-US', {minimumFractionDigits: 0, maximumFractionDigits: digits});

function amount(value, unit) {
  if (unit === 'bytes') return bytesText(value);
  if (unit === 'seconds') return secondsText(value);
  if (unit === 'percent') return Math.abs(value) >= 9.95 ? `${value.toFixed(0)} %` : `${(value + 0).toFixed(1)} %`;
  if (unit === 'count') return grouped(value, 2);
  const number = Math.abs(value) >= 1000 ? grouped(value) : plain(value, 4);
  return `${number} ${SYMBOLS[unit] ?? unit}`.trimEnd();
}

function bytesText(value) {
  if (Math.round(Math.abs(value)) < 1024) return `${Math.round(value)} B`;
  for (const name of BYTES.slice(1)) {
    value /= 1024;
    const number = Math.abs(value) >= 100 ? value.toFixed(0) : plain(value, 3);
    if (Math.abs(Number(number)) < 1024) return `${number} ${name}`;
  }
  return `${grouped(value / 1024)} EiB`;
}

function secondsText(value) {
  if (value < 0.1) return `${plain(Number((value * 1000).toFixed(3)), 3)} ms`;
  if (value < 60 && Number.isInteger(value)) return `${value} s`;
  if (value < 59.995) return `${value.toFixed(2)} s`;
  const whole = Math.round(value);
  const parts = [[Math.floor(whole / 86400), 'd'], [Math.floor(whole / 3600) % 24, 'h'],
    [Math.floor(whole / 60) % 60, 'm'], [whole % 60, 's']];
  while (parts[0][0] === 0) parts.shift();
  return parts.map(([number, name]) => number + name).join(' ');
}

function scale(largest, unit) {
  if (unit === 'seconds' && largest > 0 && largest < 0.2) return [0.001, 'ms'];
  const threshold = unit === 'seconds' ? largest / 2 : largest;
  const steps = STEPS[unit] || [[1, SYMBOLS[unit] ?? unit]];
  return steps.filter(([step]) => step <= threshold).pop() || steps[0];
}

// --- curves ---

const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const colour = number => css(`--colour-${number % 10 + 1}`);
const faded = (hex, share) => `rgba(${[1, 3, 5].map(at => parseInt(hex.slice(at, at + 2), 16)).join(',')},${share})`;
const escaped = words => words.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');
const shortened = (words, most) => words.length <= most ? words
  : words.slice(0, Math.ceil((most - 1) / 2)) + '…' + words.slice(words.length - Math.floor((most - 1) / 2));
const highest = panel => (panel.peak || panel.mean).reduce((most, value) => Math.max(most, value ?? 0), 0) * panel.by;
const length = run => run.panels.reduce((most, panel) => Math.max(most, panel.t[panel.t.length - 1]), 0);

// The moments of all panels, and more where these are far apart: every curve then has a value at every moment.
function moments(panels, end) {
  const all = new Set(panels.flatMap(panel => panel.t));
  for (let number = 0; number <= FEWEST; number++) all.add(end * number / FEWEST);
  return [...all].sort((one, other) => one - other);
}

// The values of a curve at these moments: each holds from the moment before it to its own.
function at(times, panel, values) {
  let index = 0;
  return times.map(time => {
    while (index < panel.t.length && panel.t[index] < time) index++;
    const value = index < panel.t.length && time >= panel.t[0] ? values[index] : null;
    return value === null ? null : value * panel.by;
  });
}

function clock(runs) {
  if (page.clock) return {place: (seconds, run) => new Date(1000 * (run.start + seconds)), title: 'time', date: true};
  const [by, symbol] = scale(Math.max(...runs.map(length)), 'seconds');
  return {place: seconds => Number((seconds / by).toPrecision(6)), title: `time since the start (${symbol})`, symbol};
}

function line(times, values, run, time, by, panel) {
  const each = panel.rate ? ' per second' : '';
  return {type: 'scatter', mode: 'lines', connectgaps: false, xaxis: 'x', hovertemplate: '%{text}',
    x: times.map(seconds => time.place(seconds, run)), y: values.map(value => value === null ? null : value / by),
    text: values.map(value => value === null ? '' : amount(value, panel.unit) + each)};
}

function runFigure(run, width) {
  const time = clock([run]), times = moments(run.panels, length(run)), data = [], axes = {}, headings = [];
  run.panels.forEach((panel, number) => {
    const yaxis = number ? `y${number + 1}` : 'y', shade = colour(panel.colour);
    const most = Math.max(highest(panel), panel.requested ?? 0, panel.capacity ?? 0, ...(panel.requests ?? []));
    const [by, symbol] = scale(most, panel.unit);
    const add = (name, values, style) => data.push({...line(times, values, run, time, by, panel), name, yaxis, ...style});
    if (panel.peak) add(`${panel.title}, peak`, at(times, panel, panel.peak), {line: {color: shade, width: 1, shape: 'vh', dash: 'dot'}});
    add(panel.peak ? `${panel.title}, mean` : panel.name ? `${panel.title}, ${panel.name}` : panel.title, at(times, panel, panel.mean),
      {line: {color: shade, width: 1.6, shape: 'vh'}, fill: 'tozeroy', fillcolor: faded(shade, 0.14)});
    if (panel.requested !== undefined) add(`${panel.title}, requested`, times.map(() => panel.requested),
      {line: {color: css('--requested'), width: 1.5, dash: 'dash'}});
    if (panel.requests) add(`${panel.title}, ${panel.requests_name ?? 'requested'}`, at(times, panel, panel.requests),
      {line: {color: css('--requested'), width: 1.5, shape: 'vh', dash: 'dash'}});
    if (panel.mark) data.push({type: 'scatter', mode: 'markers', xaxis: 'x', yaxis, name: `${panel.title}, peak explained`,
      x: [time.place(panel.mark[0], run)], y: [panel.mark[1] / by], text: [escaped(panel.mark[2])], hovertemplate: '%{text}',
      marker: {color: css('--requested'), size: 7}});
    if (panel.capacity) add(`${panel.title}, capacity`, times.map(() => panel.capacity),
      {line: {color: css('--line'), width: 1.2, dash: 'longdashdot'}});
    axes[`yaxis${yaxis.slice(1)}`] = valueAxis(panel, symbol);
    headings.push({text: `<b>${escaped(panel.title)}</b>`, xref: 'paper', x: 0, xanchor: 'left', yref: `${yaxis} domain`,
      y: 1, yanchor: 'bottom', showarrow: false, font: {size: 12}});
  });
  const longest = Math.max(...data.map(trace => trace.name.length));
  const layout = frame(width, (width < NARROW ? 165 : 200) * run.panels.length, data, time,
    Math.max(width < NARROW ? 155 : 178, 54 + 7 * longest));
  Object.assign(layout, axes, {annotations: headings, hovermode: 'x unified', hoversubplots: 'axis', hoverdistance: -1,
    grid: {rows: run.panels.length, columns: 1, ygap: 0.32}});
  layout.xaxis.anchor = run.panels.length > 1 ? `y${run.panels.length}` : 'y';
  return {data, layout};
}

function overviewFigure(title, width) {
  const runs = page.runs.filter(run => run.panels.some(panel => panel.title === title));
  const panels = runs.map(run => run.panels.find(panel => panel.title === title));
  const time = clock(runs), most = Math.max(...panels.map(highest)), [by, symbol] = scale(most, panels[0].unit);
  const letters = Math.floor(Math.min(width - 60, 300) / 8);
  const data = runs.map((run, number) => {
    const panel = panels[number], times = moments([panel], length(run)), name = escaped(shortened(run.label, letters));
    const trace = line(times, at(times, panel, panel.peak || panel.mean), run, time, by, panel);
    return {...trace, name, line: {color: colour(number), width: 1.6, shape: 'vh'},
      hovertemplate: `%{text} at %{x}<extra>${escaped(shortened(run.label, 40))}</extra>`};
  });
  const layout = frame(width, 340, data, time, Math.min(width - 30, 60 + 8 * Math.max(...data.map(trace => trace.name.length))));
  Object.assign(layout, {yaxis: valueAxis(panels[0], symbol), hovermode: 'closest', hoverdistance: -1});
  return {data, layout};
}

// The layout around the axes. The legend has columns of a fixed width, so that the room it needs is known.
function frame(width, height, data, time, entry) {
  const left = width < NARROW ? 48 : 66, inside = width - left - 16;  // plotly makes the legend as wide as the axes
  const columns = Math.max(Math.floor(inside / entry), 1), rows = Math.ceil(data.length / columns);
  const room = Math.min(rows * 20, 200), top = 34 + room + 24, grid = css('--rule');
  const layout = {width, height: height + top + 56, margin: {l: left, r: 16, t: top, b: 56},
    font: {family: "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif", size: width < NARROW ? 12 : 13, color: css('--ink')},
    paper_bgcolor: 'rgba(0,0,0,0)', plot_bgcolor: 'rgba(0,0,0,0)', showlegend: true,
    hoverlabel: {namelength: -1, bgcolor: css('--card'), bordercolor: css('--line'), font: {color: css('--ink'), size: 12}},
    modebar: {bgcolor: 'rgba(0,0,0,0)', color: css('--line'), activecolor: css('--ink')},
    xaxis: {title: {text: time.title, font: {size: 12}}, gridcolor: grid, linecolor: grid, zeroline: false, automargin: true}};
  layout.legend = {orientation: 'h', x: 0, xanchor: 'left', xref: 'container', y: 1 - 34 / layout.height, yref: 'container',
    yanchor: 'top', font: {size: 12}, entrywidth: entry - 44, entrywidthmode: 'pixels', maxheight: 210, bgcolor: 'rgba(0,0,0,0)'};
  Object.assign(layout.xaxis, time.date ? {type: 'date'}
    : {ticksuffix: ` ${time.symbol}`, hoverformat: '.4~g', rangemode: 'tozero', nticks: width < NARROW ? 5 : 10});
  return layout;
}

function valueAxis(panel, symbol) {
  const named = {percent: '% (100 = one core)', count: 'number'}[panel.unit] ?? symbol;
  return {title: {text: panel.rate ? `${named} per second` : named, font: {size: 11}, standoff: 4}, rangemode: 'tozero',
    gridcolor: css('--rule'), zerolinecolor: css('--line'), automargin: true, exponentformat: 'none',
    separatethousands: true, nticks: 6, ticks: 'outside', tickcolor: css('--rule')};
}

// --- drawing: when a figure comes near the window, and again when its width or the colours change ---

// The buttons are named one by one: plotly's own choice has one that sends the figure to a server of theirs.
const OPTIONS = {displaylogo: false, plotlyServerURL: '', toImageButtonOptions: {format: 'svg', filename: 'jobmeter'},
  modeBarButtons: [['toImage', 'zoom2d', 'pan2d', 'zoomIn2d', 'zoomOut2d', 'autoScale2d', 'resetScale2d']]};
const drawn = new Set();

function draw(place) {
  const width = Math.floor(place.clientWidth);
  if (!width) return;
  const {run, overview} = place.dataset;
  const figure = run !== undefined ? runFigure(byId.get(run), width) : overviewFigure(overview, width);
  place.style.minHeight = '';
  drawn.add(place);
  place.dataset.width = width;
  Plotly.react(place, figure.data, figure.layout, OPTIONS);
}

const places = () => [...document.querySelectorAll('[data-run], [data-overview]')];
const watcher = new IntersectionObserver(entries => {
  for (const entry of entries) if (entry.isIntersecting) { watcher.unobserve(entry.target); draw(entry.target); }
}, {rootMargin: '600px'});
for (const place of places()) {
  place.style.minHeight = place.dataset.run !== undefined ? `${200 * byId.get(place.dataset.run).panels.length + 130}px` : '450px';
  watcher.observe(place);
}
let resized;
addEventListener('resize', () => {
  clearTimeout(resized);
  resized = setTimeout(() => {
    for (const place of drawn) if (place.isConnected && Math.floor(place.clientWidth) !== Number(place.dataset.width)) draw(place);
  }, 100);
});
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => drawn.forEach(draw));
addEventListener('beforeprint', () => places().forEach(place => drawn.has(place) || draw(place)));
