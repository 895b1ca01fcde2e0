package discovery

import (
	"context"
	"slices"
	"sync/atomic"

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
			firstAddress := func(e resolver.Endpoint) string { return e.Addresses[0].Addr } // identifies the endpoint (gRFC A61)
			a.Resolved = lingering.Next(s.refresh.RemoveAfter, found, firstAddress)
		}
		return a, err
	}), nil
}

// lookUp starts the source, waits for its first answer or failure, and closes it again.
func (s refreshed) lookUp(ctx context.Context, r *Receiver) (Answer, error) {
	var answer atomic.Pointer[Answer]
	reported, done := context.WithCancelCause(ctx)
	defer done(nil)
	started, err := s.Source.Start(r.With(Hooks{
		Update: func(a Answer) error { answer.Store(&a); done(nil); return nil },
		Fail:   done,
	}))
	if err != nil {
		return Answer{}, err
	}
	defer started.close()
	<-reported.Done()
	if a := answer.Load(); a != nil {
		return *a, nil
	}
	return Answer{}, context.Cause(reported)
}
