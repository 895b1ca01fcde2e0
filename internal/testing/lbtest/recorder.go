package lbtest

import (
	"maps"
	"strings"
	"sync"

	estats "google.golang.org/grpc/experimental/stats"
)

// Recorder is a metrics recorder that adds up values by metric and labels. Its methods may be
// called concurrently.
type Recorder struct {
	estats.UnimplementedMetricsRecorder

	mu        sync.Mutex
	sums      map[string]int64
	reporters map[*estats.AsyncMetricReporter]map[*estats.MetricDescriptor]bool
}

func key(d *estats.MetricDescriptor, labels []string) string {
	if len(labels) != len(d.Labels)+len(d.OptionalLabels) {
		panic("lbtest: " + d.Name + " was recorded with the labels " + strings.Join(labels, ", "))
	}
	return d.Name + " " + strings.Join(labels, " ")
}

func (r *Recorder) add(d *estats.MetricDescriptor, n int64, labels []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sums == nil {
		r.sums = make(map[string]int64)
	}
	r.sums[key(d, labels)] += n
}

func (r *Recorder) RecordInt64Count(h *estats.Int64CountHandle, n int64, labels ...string) {
	r.add(h.Descriptor(), n, labels)
}

func (r *Recorder) RecordInt64UpDownCount(h *estats.Int64UpDownCountHandle, n int64, labels ...string) {
	r.add(h.Descriptor(), n, labels)
}

func (r *Recorder) RegisterAsyncReporter(reporter estats.AsyncMetricReporter, metrics ...estats.AsyncMetric) func() {
	wanted := make(map[*estats.MetricDescriptor]bool)
	for _, m := range metrics {
		wanted[m.Descriptor()] = true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reporters == nil {
		r.reporters = make(map[*estats.AsyncMetricReporter]map[*estats.MetricDescriptor]bool)
	}
	id := &reporter
	r.reporters[id] = wanted
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.reporters, id)
	}
}

func (r *Recorder) Counts() map[string]int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	counts := maps.Clone(r.sums)
	maps.DeleteFunc(counts, func(_ string, n int64) bool { return n == 0 })
	return counts
}

func (r *Recorder) Export() map[string]int64 {
	r.mu.Lock()
	reporters := make([]estats.AsyncMetricReporter, 0, len(r.reporters))
	for id := range r.reporters {
		reporters = append(reporters, *id)
	}
	r.mu.Unlock()
	all := make(gauges)
	for _, reporter := range reporters {
		_ = reporter.Report(all)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, n := range r.sums {
		all[key] += n
	}
	for key, n := range all {
		if n == 0 {
			delete(all, key)
		}
	}
	return all
}

type gauges map[string]int64

func (g gauges) RecordInt64AsyncGauge(h *estats.Int64AsyncGaugeHandle, n int64, labels ...string) {
	g[key(h.Descriptor(), labels)] = n
}
