"""Writes `dashboards/`: Grafana dashboards and Prometheus rules (`make dashboards`)."""
