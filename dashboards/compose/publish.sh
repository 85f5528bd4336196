#!/bin/sh
# Every minute: load what the Collector wrote, report, publish the snapshot that Grafana reads.
set -u
while true; do
  turncap load /data/telemetry --db /data/turns.duckdb &&
    turncap report --db /data/turns.duckdb --out /data/report &&
    turncap snapshot --db /data/turns.duckdb --out /data/snapshot.duckdb --report /data/report/report.json
  sleep 60
done
