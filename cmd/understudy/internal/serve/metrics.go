package serve

import (
	"cmp"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics has the metrics of clients, files and targets.
type metrics struct {
	registry                         *prometheus.Registry
	acks, nacks, refused             *prometheus.CounterVec
	repeated                         prometheus.Counter
	clusters, rejected, lastLoadGood prometheus.Gauge
}

func newMetrics(droppedLines func() uint64) *metrics {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewBuildInfoCollector(), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	with := promauto.With(registry)
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		return with.NewCounterVec(prometheus.CounterOpts{Name: "understudy_serve_" + name, Help: help}, labels)
	}
	gauge := func(name, help string) prometheus.Gauge {
		return with.NewGauge(prometheus.GaugeOpts{Name: "understudy_serve_" + name, Help: help})
	}
	with.NewCounterFunc(prometheus.CounterOpts{Name: "understudy_serve_log_lines_dropped_total", Help: "Log lines that were dropped because the log was not read or could not be written."},
		func() float64 { return float64(droppedLines()) })
	return &metrics{
		registry:     registry,
		acks:         counters("acks_total", "Responses with a resource of the cluster that a client has accepted.", "cluster", "type"),
		nacks:        counters("nacks_total", "Responses with a resource of the cluster that a client has rejected.", "cluster", "type"),
		refused:      counters("refused_total", "Streams that were ended because they exceeded the limit.", "limit"),
		repeated:     counters("repeated_nacks_total", "Rejections that were not logged, because the stream had just given the same reason, or ten others within the minute.").WithLabelValues(),
		clusters:     gauge("clusters", "Clusters that are served."),
		rejected:     gauge("rejected_files", "Files and directories that are currently rejected, and targets that currently fail."),
		lastLoadGood: gauge("last_good_load_timestamp_seconds", "Unix time at which all files were last checked and none was rejected; 0 if never."),
	}
}

// add adds the metrics of the open streams.
func (m *metrics) add(c *clients) {
	with := promauto.With(m.registry)
	with.NewGaugeFunc(prometheus.GaugeOpts{Name: "understudy_serve_clients", Help: "Streams of clients that are open."}, func() float64 {
		count, _ := c.lag(time.Now())
		return float64(count)
	})
	with.NewGaugeFunc(prometheus.GaugeOpts{Name: "understudy_serve_lag_seconds", Help: "How long the slowest client has not accepted what it was sent; 0 if all clients have."}, func() float64 {
		_, lag := c.lag(time.Now())
		return lag.Seconds()
	})
}

// remove removes the metrics of a cluster.
func (m *metrics) remove(cluster string) {
	m.acks.DeletePartialMatch(prometheus.Labels{"cluster": cluster})
	m.nacks.DeletePartialMatch(prometheus.Labels{"cluster": cluster})
}

// load records a reading of all files.
func (m *metrics) load(clusters, rejected int) {
	m.clusters.Set(float64(clusters))
	m.rejected.Set(float64(rejected))
	if rejected == 0 && clusters > 0 {
		m.lastLoadGood.SetToCurrentTime()
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
