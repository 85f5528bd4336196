// node grammar.mjs FILE…: parses the LogQL and TraceQL of committed dashboards by Grafana's own grammars.
import { parser as logql } from '@grafana/lezer-logql';
import { parser as traceql } from '@grafana/lezer-traceql';
import { readFileSync } from 'node:fs';

const faults = (parser, query) => {
  const found = [];
  parser.parse(query).iterate({ enter: (node) => { if (node.type.isError) found.push(node.from); } });
  return found;
};
// a grammar that finds no fault in these would find none anywhere
if (!faults(logql, '{a="b"} | x = ').length || !faults(traceql, '{ name = }').length) throw new Error('the grammars accept anything');

let parsed = 0, failed = 0;
for (const file of process.argv.slice(2)) {
  for (const panel of JSON.parse(readFileSync(file)).panels) {
    for (const { datasource, expr, query } of panel.targets ?? []) {
      const parser = { loki: logql, tempo: traceql }[datasource.type];
      if (!parser) continue;
      const text = (expr ?? query).replace(/\$\{\w+\}/g, 'some-turn-1');
      const at = faults(parser, text);
      parsed += 1;
      if (at.length) { failed += 1; console.log(`${file}: ${panel.title}: fault at character ${at[0]} of ${text}`); }
    }
  }
}
console.log(`${parsed} queries in LogQL and TraceQL parsed, ${failed} with faults`);
process.exit(failed || !parsed ? 1 : 0);
