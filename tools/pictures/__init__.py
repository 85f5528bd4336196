"""Pictures of the committed dashboards with real data, drawn with Grafana's own components."""
