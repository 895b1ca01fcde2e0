package adsclient

import (
	estats "google.golang.org/grpc/experimental/stats"
)

var (
	responsesMetric = estats.RegisterInt64Count(metric("understudy.eds.responses", "Responses received.", "{response}"))
	rejectedMetric  = estats.RegisterInt64Count(metric("understudy.eds.nacks", "Responses with a resource that was rejected (NACK).", "{response}"))
	failedMetric    = estats.RegisterInt64Count(metric("understudy.eds.stream_failures", "Streams that could not be opened, or ended without a response.", "{stream}"))
	missingMetric   = estats.RegisterInt64Count(metric("understudy.eds.missing", "Clusters that did not arrive within 15 s.", "{cluster}"))
	connectedMetric = estats.RegisterInt64UpDownCount(metric("understudy.eds.connected", "Streams on which the server has answered.", "{stream}"))
)

func metric(name, description, unit string) estats.MetricDescriptor {
	return estats.MetricDescriptor{Name: name, Description: description, Unit: unit, Labels: []string{"understudy.eds.server"}, Default: true}
}

func (c *client) count(metric interface {
	Record(to estats.MetricsRecorder, n int64, labels ...string)
}, n int64) {
	if c.recorder != nil {
		metric.Record(c.recorder, n, c.server.URI)
	}
}
