package adsclient

import (
	estats "google.golang.org/grpc/experimental/stats"
)

type metricsRecorder = estats.MetricsRecorder

var serverLabel = []string{"understudy.eds.server"}

// The metrics of a stream. Each has the target of the server as its label.
var (
	responsesMetric = counter("understudy.eds.responses", "Responses received.", "{response}")
	rejectedMetric  = counter("understudy.eds.nacks", "Responses with a resource that was rejected (NACK).", "{response}")
	ignoredMetric   = counter("understudy.eds.ignored", "Responses ignored, because of a type that was not asked for.", "{response}")
	failedMetric    = counter("understudy.eds.stream_failures", "Streams that ended, or could not be opened, without a response.", "{stream}")
	missingMetric   = counter("understudy.eds.missing", "Clusters that did not come within 15 s.", "{cluster}")
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

// recorder counts what happens on the stream to one server.
type recorder struct {
	to     metricsRecorder
	server string
}

// newRecorder returns one that discards where to is nil.
func newRecorder(to metricsRecorder, server string) recorder {
	if to == nil {
		to = discard{}
	}
	return recorder{to, server}
}

type discard struct {
	estats.UnimplementedMetricsRecorder
}

func (r recorder) received()     { responsesMetric.Record(r.to, 1, r.server) }
func (r recorder) rejected()     { rejectedMetric.Record(r.to, 1, r.server) }
func (r recorder) ignored()      { ignoredMetric.Record(r.to, 1, r.server) }
func (r recorder) failed()       { failedMetric.Record(r.to, 1, r.server) }
func (r recorder) missing()      { missingMetric.Record(r.to, 1, r.server) }
func (r recorder) connected()    { connectedMetric.Record(r.to, 1, r.server) }
func (r recorder) disconnected() { connectedMetric.Record(r.to, -1, r.server) }
