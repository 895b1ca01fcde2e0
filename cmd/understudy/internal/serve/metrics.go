package serve

import (
	"cmp"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics has the metrics of clients, files and targets.
type metrics struct {
	registry                    *prometheus.Registry
	refused                     *prometheus.CounterVec
	acks, nacks                 prometheus.Counter
	clients, clusters, rejected prometheus.Gauge
}

func newMetrics(droppedLines func() uint64) *metrics {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewBuildInfoCollector(), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	with := promauto.With(registry)
	with.NewCounterFunc(prometheus.CounterOpts{Name: "understudy_serve_log_lines_dropped_total", Help: "Log lines that were dropped because the log was not read or could not be written."},
		func() float64 { return float64(droppedLines()) })
	return &metrics{
		registry: registry,
		refused:  with.NewCounterVec(prometheus.CounterOpts{Name: "understudy_serve_refused_total", Help: "Streams that were ended because they exceeded the limit."}, []string{"limit"}),
		acks:     with.NewCounter(prometheus.CounterOpts{Name: "understudy_serve_acks_total", Help: "Responses that a client has accepted."}),
		nacks:    with.NewCounter(prometheus.CounterOpts{Name: "understudy_serve_nacks_total", Help: "Responses that a client has rejected."}),
		clients:  with.NewGauge(prometheus.GaugeOpts{Name: "understudy_serve_clients", Help: "Streams of clients that are open."}),
		clusters: with.NewGauge(prometheus.GaugeOpts{Name: "understudy_serve_clusters", Help: "Clusters that are served."}),
		rejected: with.NewGauge(prometheus.GaugeOpts{Name: "understudy_serve_rejected_files", Help: "Files and directories that are currently rejected, and targets that currently fail."}),
	}
}

// metricsHandler serves metrics at /metrics, liveness at /healthz, and readiness at /readyz. The
// server is ready when it serves any valid content.
func metricsHandler(p *publisher) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(p.metrics.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !p.resources.current.Load().loaded {
			http.Error(w, "nothing valid has been loaded yet", http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "ok\n")
	})
	return mux
}

// metricsAddress returns the address to listen on. If text is only a port, with or without a colon,
// the address is on loopback.
func metricsAddress(text string) (string, error) {
	if !strings.Contains(text, ":") {
		text = ":" + text
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return "", fmt.Errorf("metrics: %w, want host:port, or a port on loopback", err)
	}
	return net.JoinHostPort(cmp.Or(host, "127.0.0.1"), port), nil
}
