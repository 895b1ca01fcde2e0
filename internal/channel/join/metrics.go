package join

import (
	"cmp"
	"errors"

	estats "google.golang.org/grpc/experimental/stats"

	"github.com/understudy-lb/understudy/internal/text/printable"
)

var updatesMetric = estats.RegisterInt64Count(estats.MetricDescriptor{
	Name:        "understudy.source.updates",
	Description: "Answers with new content that were accepted, answers that were refused, and failures to get an answer.",
	Unit:        "{update}",
	Labels:      []string{"grpc.target", "understudy.source", "understudy.source.result"},
	Default:     true,
})

// For a mechanism from a list, we use the name of the mechanism that sent the list as the label. A
// management server can send as many names as it likes, and every new label value costs memory.
func (j *Join) count(s *source, result string) {
	if j.config.Recorder == nil || s.isClosed() {
		return
	}
	if s.parent != nil {
		s = s.parent
	}
	updatesMetric.Record(j.config.Recorder, 1, j.config.Label, printable.Text(cmp.Or(s.name, j.config.Scheme)), result)
}

func resultOf(err error) string {
	var r interface{ Refused() bool }
	if errors.As(err, &r) && r.Refused() {
		return "refused"
	}
	return "failed"
}
