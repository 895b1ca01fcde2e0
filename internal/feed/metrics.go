package feed

import (
	"errors"

	estats "google.golang.org/grpc/experimental/stats"

	"github.com/understudy-lb/understudy/internal/printable"
	"github.com/understudy-lb/understudy/topology"
)

var updatesMetric = estats.RegisterInt64Count(estats.MetricDescriptor{
	Name:        "understudy.source.updates",
	Description: "What sources told: answers that were accepted and say something new, answers that were refused, and failures to find one.",
	Unit:        "{update}",
	Labels:      []string{"grpc.target", "understudy.source", "understudy.source.result"},
	Default:     true,
})

// result is what became of something that a source told.
type result string

// The results.
const (
	accepted   result = "accepted"
	wasRefused result = "refused"
	gaveNone   result = "failed"
)

// count counts what a source told. No lock is held.
func (f *Feed) count(s *slot, r result) {
	if f.config.Recorder == nil {
		return
	}
	f.mu.Lock()
	over := f.closed || s.gone
	f.mu.Unlock()
	if over {
		return
	}
	name := s.Name
	if name == "" {
		name = f.config.Scheme
	}
	updatesMetric.Record(f.config.Recorder, 1, f.config.Label, printable.Text(name), string(r))
}

// resultOf says whether there was an answer, which err refused.
func resultOf(err error) result {
	if _, invalid := errors.AsType[*topology.Invalid](err); invalid || errors.Is(err, errNoAddresses) {
		return wasRefused
	}
	if r, ok := errors.AsType[interface {
		error
		Refused() bool
	}](err); ok && r.Refused() {
		return wasRefused
	}
	return gaveNone
}
