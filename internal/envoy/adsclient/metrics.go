package adsclient

import (
	estats "google.golang.org/grpc/experimental/stats"
)

var serverLabel = []string{"understudy.eds.server"}

var (
	responsesMetric = counter("understudy.eds.responses", "Responses received.", "{response}")
	rejectedMetric  = counter("understudy.eds.nacks", "Responses with a resource that was rejected (NACK).", "{response}")
	failedMetric    = counter("understudy.eds.stream_failures", "Streams that could not be opened, or ended without a response.", "{stream}")
	missingMetric   = counter("understudy.eds.missing", "Clusters that did not arrive within 15 s.", "{cluster}")
	connectedMetric = estats.RegisterInt64UpDownCount(estats.MetricDescriptor{
		Name:        "understudy.eds.connected",
		Description: "Streams on which the server has answered.",
		Unit:        "{stream}",
		Labels:      serverLabel,
		Default:     true,
	})
)

func counter(name, description, unit string) *estats.Int64CountHandle {
	return estats.RegisterInt64Count(estats.MetricDescriptor{
		Name:        name,
		Description: description,
		Unit:        unit,
		Labels:      serverLabel,
		Default:     true,
	})
}

func (c *client) count(metric interface {
	Record(to estats.MetricsRecorder, n int64, labels ...string)
}, n int64) {
	if c.recorder != nil {
		metric.Record(c.recorder, n, c.server.URI)
	}
}
