package serve

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// gauges holds the values for probes and metrics. It is safe for concurrent use.
type gauges struct {
	loaded       atomic.Bool // valid content has been read from files, targets or the cache
	clusters     atomic.Int64
	rejected     atomic.Int64 // number of paths and targets with a problem
	lastGoodLoad atomic.Int64 // time of the last reload without a problem, in Unix nanoseconds, or 0
}

func (g *gauges) record(now time.Time, clusters, rejected int) {
	g.clusters.Store(int64(clusters))
	g.rejected.Store(int64(rejected))
	if rejected == 0 && clusters > 0 {
		g.lastGoodLoad.Store(now.UnixNano())
	}
}

func registry(o Options, p *publisher) *prometheus.Registry {
	r := prometheus.NewRegistry()
	gauge := func(name, help string, value func() float64) {
		r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
	}
	g := &p.gauges
	gauge("understudy_serve_clusters", "Clusters that are served.", func() float64 { return float64(g.clusters.Load()) })
	gauge("understudy_serve_rejected_files", "Files and directories that are currently rejected, and targets that currently fail.", func() float64 { return float64(g.rejected.Load()) })
	gauge("understudy_serve_last_good_load_timestamp_seconds", "Unix time at which all files were last checked and none was rejected; 0 if never.", func() float64 { return time.Duration(g.lastGoodLoad.Load()).Seconds() })
	r.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "understudy_serve_log_lines_dropped_total",
		Help: "Log lines that were dropped because the log was not read or could not be written.",
	}, func() float64 {
		if o.droppedLines == nil {
			return 0
		}
		return float64(o.droppedLines())
	}))
	r.MustRegister(p.clients, collectors.NewBuildInfoCollector(), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}
