// Draws one committed dashboard from window.__input = {dashboard, frames, from, to}. Grafana's own code: theme,
// panel frame, time series, big values, bar gauge, table, units, colours. Drawn here, since their code is in no
// package: logs, XY chart, trend. The layout is the dashboard's own grid.
import { createTheme, FieldColorModeId, FieldType, getDisplayProcessor, getFieldSeriesColor, ThemeContext, toDataFrame } from '@grafana/data';
import { BarGauge, BigValue, PanelChrome, Table, TimeSeries } from '@grafana/ui';
import { createRoot } from 'react-dom/client';
import 'uplot/dist/uPlot.min.css';

const theme = createTheme({ colors: { mode: 'light' } });
const COLUMN = 64, LINE = 34, GAP = 8;
const TIME = { drawStyle: 'line', lineInterpolation: 'linear', lineWidth: 1, fillOpacity: 0, gradientMode: 'none',
  showPoints: 'never', pointSize: 5, stacking: { mode: 'none', group: 'A' }, axisPlacement: 'auto', axisLabel: '',
  axisColorMode: 'text', scaleDistribution: { type: 'linear' }, spanNulls: false, thresholdsStyle: { mode: 'off' },
  hideFrom: { tooltip: false, viz: false, legend: false } };

function configured(frames, panel) {
  const { defaults, overrides } = panel.fieldConfig;
  let index = 0;
  return frames.map((raw) => {
    const frame = toDataFrame(raw);
    frame.fields.forEach((field) => {
      const config = structuredClone({ ...defaults, custom: { ...TIME, ...(defaults.custom ?? {}) }, ...(field.config ?? {}) });
      const name = field.config?.displayName ?? field.name;
      for (const { matcher, properties } of overrides) {
        const hit = matcher.id === 'byName' ? matcher.options === name : new RegExp(`^(?:${matcher.options})$`).test(name);
        for (const { id, value } of hit ? properties : []) {
          if (id.startsWith('custom.')) config.custom[id.slice(7)] = value;
          else config[id] = value;
        }
      }
      const numbers = field.type === FieldType.number;
      if (field.type === FieldType.time) { config.unit = undefined; config.custom = undefined; }
      if (!numbers && field.type !== FieldType.time) config.unit = config.unit === defaults.unit ? undefined : config.unit;
      field.config = config;
      field.state = { displayName: name, seriesIndex: numbers ? index++ : undefined, origin: undefined };
      field.display = getDisplayProcessor({ field, theme });
    });
    return frame;
  });
}

const values = (frames) => frames.flatMap((frame) => frame.fields.filter((f) => f.type !== FieldType.time).flatMap((field) =>
  field.values.length ? [{ field, value: field.values[field.values.length - 1], name: field.state.displayName }] : []));
const shown = ({ field, value, name }) => ({ ...field.display(value), title: name });

function Nothing({ panel }) {
  return <div style={{ height: '100%', display: 'grid', placeItems: 'center', color: theme.colors.text.secondary }}>
    {panel.fieldConfig.defaults.noValue ?? 'No data'}</div>;
}

function Stat({ panel, frames, width, height }) {
  const found = values(frames);
  if (!found.length) return <Nothing panel={panel} />;
  const each = Math.floor(width / found.length) - 4;
  const withNames = panel.options.textMode === 'value_and_name' || found.length > 1;
  return <div style={{ display: 'flex', gap: 4 }}>{found.map((one, n) => {
    const text = shown(one);
    if (one.field.config.color?.mode === 'fixed') text.color = theme.visualization.getColorByName(one.field.config.color.fixedColor);
    return <BigValue key={n} theme={theme} width={each} height={height} value={{ ...text, title: withNames ? text.title : undefined }}
      colorMode="value" graphMode="none" justifyMode="center" textMode={withNames ? 'value_and_name' : 'value'} />;
  })}</div>;
}

function Bars({ panel, frames, width, height }) {
  let found = values(frames);
  if (panel.options.reduceOptions.values && frames.length) {
    const [names, numbers] = frames[0].fields;
    found = [...numbers.values].map((value, n) => ({ field: numbers, value, name: String(names.values[n]) }));
  }
  if (!found.length) return <Nothing panel={panel} />;
  const most = Math.max(...found.map((one) => one.value), 1);
  const each = Math.min(Math.floor(height / found.length), 40);
  const widest = Math.min(170, Math.max(...found.map((one) => one.name.length)) * 7.5 + 14);
  return <div>{found.map((one, n) => {
    const field = { ...one.field.config, min: 0, max: most, color: { mode: FieldColorModeId.Fixed, fixedColor: 'blue' } };
    return <div key={n} style={{ height: each, display: 'flex', alignItems: 'center' }}>
      <span style={{ width: widest, textAlign: 'right', paddingRight: 8, whiteSpace: 'nowrap', overflow: 'hidden' }}>{one.name}</span>
      <BarGauge theme={theme} width={width - widest} height={Math.max(each - 4, 10)} orientation="horizontal" displayMode="basic"
        showUnfilled={false} field={field} value={{ ...one.field.display(one.value), color: theme.visualization.getColorByName('blue') }}
        display={one.field.display} />
    </div>;
  })}</div>;
}

function Lines({ panel, frames, width, height, from, to }) {
  const filled = frames.filter((frame) => frame.length > 0);
  if (!filled.length) return <Nothing panel={panel} />;
  const range = { from: { valueOf: () => from }, to: { valueOf: () => to }, raw: { from: 'now-6h', to: 'now' } };
  return <TimeSeries width={width} height={height} frames={filled} timeRange={range} timeZone="utc" legend={panel.options.legend}
    structureRev={1} options={panel.options} />;
}

function Logs({ lines }) {
  return <div style={{ fontFamily: theme.typography.fontFamilyMonospace, fontSize: 12, overflow: 'hidden' }}>
    {lines.map(([at, text], n) => <div key={n} style={{ padding: '2px 0', borderBottom: `1px solid ${theme.colors.border.weak}` }}>
      <span style={{ color: theme.colors.text.secondary }}>{new Date(at).toISOString().slice(0, 19).replace('T', ' ')}</span>&nbsp; {text}</div>)}</div>;
}

// XY chart and trend: x is the first field, every other field is a series.
function Chart({ panel, frames, width, height, points }) {
  if (!frames.length || !frames[0].length) return <Nothing panel={panel} />;
  const [x, ...rest] = frames[0].fields;
  const top = Math.max(...rest.flatMap((f) => [...f.values].filter((v) => v !== null)), 1), right = Math.max(...x.values, 1);
  const w = width - 46, h = height - 44, px = (v) => 40 + (v / right) * w, py = (v) => 6 + h - (v / top) * h;
  const ticks = (most) => { const step = 10 ** Math.floor(Math.log10(most)) / (most / 10 ** Math.floor(Math.log10(most)) < 3 ? 4 : 1);
    return Array.from({ length: Math.floor(most / step) + 1 }, (_, n) => n * step).filter((t) => Number.isInteger(t)); };
  const colour = (f) => getFieldSeriesColor(f, theme).color;
  return <svg width={width} height={height} fontSize="11" fill={theme.colors.text.secondary}>
    {ticks(top).map((t) => <g key={t}><line x1={40} x2={40 + w} y1={py(t)} y2={py(t)} stroke={theme.colors.border.weak} /><text x={34} y={py(t) + 4} textAnchor="end">{t}</text></g>)}
    {ticks(right).map((t) => <text key={t} x={px(t)} y={h + 20} textAnchor="middle">{t}</text>)}
    {rest.map((f) => points
      ? [...f.values].map((v, n) => v === null ? null : <circle key={n} cx={px(x.values[n])} cy={py(v)} r={3.2} fill={colour(f)} fillOpacity={0.75} />)
      : <polyline key={f.name} fill="none" stroke={colour(f)} strokeWidth={2} strokeDasharray={f.config.custom.lineStyle ? '10 6' : undefined}
          points={[...f.values].flatMap((v, n) => v === null ? [] : [`${px(x.values[n])},${py(v)}`]).join(' ')} />)}
    {rest.map((f, n) => <g key={f.name}><rect x={44 + n * 190} y={height - 14} width={14} height={4} fill={colour(f)} /><text x={64 + n * 190} y={height - 8}>{f.state.displayName}</text></g>)}
    <text x={40 + w} y={height - 8} textAnchor="end">{x.name}</text></svg>;
}

function Panel({ panel, frames, logs, from, to }) {
  const { x, y, w, h } = panel.gridPos;
  const width = w * COLUMN - GAP, height = h * LINE - GAP;
  const style = { position: 'absolute', left: x * COLUMN, top: y * LINE };
  if (panel.type === 'row') return <div style={{ ...style, fontSize: 17, fontWeight: 500, padding: '7px 4px' }}>{panel.title}</div>;
  const found = configured(frames ?? [], panel);
  window.__report.push({ title: panel.title, rows: found.reduce((sum, frame) => sum + frame.length, 0) + (logs?.length ?? 0) });
  return <div style={style}><PanelChrome title={panel.title} description={panel.description} width={width} height={height}>{(innerWidth, innerHeight) => {
    const props = { panel, frames: found, width: innerWidth, height: innerHeight, from, to };
    if (panel.type === 'stat') return <Stat {...props} />;
    if (panel.type === 'bargauge') return <Bars {...props} />;
    if (panel.type === 'timeseries') return <Lines {...props} />;
    if (panel.type === 'logs') return logs?.length ? <Logs lines={logs} /> : <Nothing panel={panel} />;
    if (panel.type === 'xychart') return <Chart {...props} points />;
    if (panel.type === 'trend') return <Chart {...props} />;
    if (!found.length || !found[0].length) return <Nothing panel={panel} />;
    return <Table data={found[0]} width={innerWidth} height={innerHeight} />;
  }}</PanelChrome></div>;
}

const { dashboard, frames, logs, from, to } = window.__input;
window.__report = [];
const bottom = Math.max(...dashboard.panels.map((p) => p.gridPos.y + p.gridPos.h));
document.body.style.cssText = `margin:0;background:${theme.colors.background.canvas};color:${theme.colors.text.primary};font:14px ${theme.typography.fontFamily}`;
const root = document.createElement('div');
root.id = 'dashboard';
root.style.cssText = `position:relative;width:${24 * COLUMN}px;height:${bottom * LINE + 48}px;padding:8px`;
document.body.append(root);
createRoot(root).render(<ThemeContext.Provider value={theme}><h1 style={{ fontSize: 20, margin: '4px 4px 8px' }}>{dashboard.title}</h1><div style={{ position: 'relative' }}>
  {dashboard.panels.map((p) => <Panel key={p.id} panel={p} frames={frames[p.id]} logs={logs[p.id]} from={from} to={to} />)}</div></ThemeContext.Provider>);
