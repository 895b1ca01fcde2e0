package discovery

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/core/names"
)

// Refreshed returns a source that starts s for each lookup, and closes it after its first answer or
// failure. This works for gRPC's DNS resolver, which looks up its name as soon as it's built. See
// Refresh.LookUp for when lookups happen. If an address is missing from an answer, we keep it until
// r.RemoveAfter answers in a row are missing it. The answers of s must set Resolved, as those of
// FromResolver do. If r.Every is 0, Refreshed returns s.
func Refreshed(s Source, r Refresh) Source {
	if r.Every == 0 {
		return s
	}
	return refreshed{s, r}
}

type refreshed struct {
	Source
	refresh Refresh
}

func (s refreshed) Start(r *Receiver) (Started, error) {
	var lingering names.Lingering[string, resolver.Endpoint]
	return s.refresh.LookUp(r, func(ctx context.Context) (Answer, error) {
		a, err := s.lookUp(ctx, r)
		hasNoAddress := func(e resolver.Endpoint) bool { return len(e.Addresses) == 0 }
		if found := slices.DeleteFunc(slices.Clone(a.Resolved), hasNoAddress); err == nil && (len(found) > 0 || a.Empty) {
			a.Resolved = lingering.Next(s.refresh.RemoveAfter, found, addressesOf)
		}
		return a, err
	}), nil
}

// lookUp starts the source, and returns its first report.
func (s refreshed) lookUp(ctx context.Context, r *Receiver) (a Answer, err error) {
	reported, done := context.WithCancel(ctx)
	defer done()
	var once sync.Once
	report := func(answer Answer, failure error) {
		once.Do(func() {
			a, err = answer, failure
			done()
		})
	}
	started, startErr := s.Source.Start(r.With(Hooks{
		Update: func(a Answer) error { report(a, nil); return nil },
		Fail:   func(err error) { report(Answer{}, err) },
	}))
	if startErr != nil {
		return Answer{}, startErr
	}
	defer started.close()
	<-reported.Done()
	once.Do(func() {}) // later reports are ignored
	return a, err
}

func addressesOf(e resolver.Endpoint) string {
	var b strings.Builder
	for _, a := range e.Addresses {
		fmt.Fprintf(&b, "%q %q,", a.Addr, a.ServerName)
	}
	return b.String()
}
