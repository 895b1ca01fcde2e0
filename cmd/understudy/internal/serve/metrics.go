package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

var (
	metricClients     = prometheus.NewDesc("understudy_serve_clients", "Streams of clients that are open.", nil, nil)
	metricSubscribers = prometheus.NewDesc("understudy_serve_subscribers", "Clients that have asked for the endpoints of the cluster.", []string{"cluster"}, nil)
	metricLag         = prometheus.NewDesc("understudy_serve_lag_seconds", "How long the slowest client has not accepted the newest endpoints of the cluster; 0 if all clients have, or if the endpoints come from elsewhere.", []string{"cluster"}, nil)
	metricACKs        = prometheus.NewDesc("understudy_serve_acks_total", "Responses with a resource of the cluster that a client has accepted.", []string{"cluster", "type"}, nil)
	metricNACKs       = prometheus.NewDesc("understudy_serve_nacks_total", "Responses with a resource of the cluster that a client has rejected.", []string{"cluster", "type"}, nil)
)

var (
	metricRepeated = prometheus.NewDesc("understudy_serve_repeated_nacks_total", "Rejections that were not logged, because the stream had just given the same reason, or ten others within the minute.", nil, nil)
	metricRefused  = prometheus.NewDesc("understudy_serve_refused_total", "Streams that were ended, and connections that were closed, because they exceeded the limit.", []string{"limit"}, nil)
)

func (c *clients) Describe(out chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{metricClients, metricSubscribers, metricLag, metricACKs, metricNACKs, metricRepeated, metricRefused} {
		out <- desc
	}
}

func (c *clients) Collect(out chan<- prometheus.Metric) {
	for _, m := range c.measure(time.Now()) {
		out <- m
	}
}

func (c *clients) measure(now time.Time) []prometheus.Metric {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := []prometheus.Metric{prometheus.MustNewConstMetric(metricClients, prometheus.GaugeValue, float64(len(c.streams))),
		prometheus.MustNewConstMetric(metricRepeated, prometheus.CounterValue, float64(c.repeatedNACKs))}
	for limit, r := range c.refusals {
		all = append(all, prometheus.MustNewConstMetric(metricRefused, prometheus.CounterValue, float64(r.count), limit))
	}
	for name, t := range c.clusters {
		subscribers, lag := c.lag(name, now)
		all = append(all,
			prometheus.MustNewConstMetric(metricSubscribers, prometheus.GaugeValue, float64(subscribers), name),
			prometheus.MustNewConstMetric(metricLag, prometheus.GaugeValue, lag.Seconds(), name))
		for kind, n := range t.acks {
			all = append(all, prometheus.MustNewConstMetric(metricACKs, prometheus.CounterValue, float64(n), name, kind))
		}
		for kind, n := range t.nacks {
			all = append(all, prometheus.MustNewConstMetric(metricNACKs, prometheus.CounterValue, float64(n), name, kind))
		}
	}
	return all
}

// metricsServer serves metrics at /metrics, liveness at /healthz, and readiness at /readyz. The
// server is ready when it serves any valid content. A nil metricsServer serves nothing.
type metricsServer struct {
	listener net.Listener
	server   http.Server
}

// newMetricsServer listens on the address in o.Metrics. If the address is only a port, with or
// without a colon, it listens on loopback.
func newMetricsServer(ctx context.Context, o Options, p *publisher) (*metricsServer, error) {
	address := o.Metrics
	if address == "" {
		return nil, nil
	}
	if !strings.Contains(address, ":") {
		address = ":" + address
	}
	if host, port, err := net.SplitHostPort(address); err != nil {
		return nil, fmt.Errorf("metrics: %w, want host:port, or a port on loopback", err)
	} else if host == "" {
		address = net.JoinHostPort("127.0.0.1", port)
	}
	listener, err := listen(ctx, address)
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry(o, p), promhttp.HandlerOpts{}))
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !p.gauges.loaded.Load() {
			http.Error(w, "nothing valid has been loaded yet", http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "ok\n")
	})
	errorLog := slog.NewLogLogger(o.Log.Handler(), slog.LevelWarn)
	return &metricsServer{listener, http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, ErrorLog: errorLog}}, nil
}

func (m *metricsServer) run() error {
	if m == nil {
		return nil
	}
	if err := m.server.Serve(m.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("metrics: %w", err)
	}
	return nil
}

func (m *metricsServer) close() {
	if m != nil {
		_ = m.server.Close()
		_ = m.listener.Close() // needed if run was never called
	}
}
