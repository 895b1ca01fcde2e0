package sourcetest_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/discovery/sourcetest"
)

func newPolledSource(*testing.T) discovery.Source {
	var n atomic.Int32
	return discovery.Poll(time.Minute, func(context.Context) (discovery.Answer, error) {
		if n.Add(1)%3 == 0 {
			return discovery.Answer{}, errors.New("the registry does not answer")
		}
		return discovery.Answer{Priorities: []discovery.Priority{{Localities: []discovery.Locality{{
			Endpoints: []discovery.Endpoint{{Addresses: []string{"10.0.0.1:1"}}},
		}}}}}, nil
	})
}

func TestPollAndShared(t *testing.T) {
	for name, source := range map[string]func(t *testing.T) discovery.Source{
		"polled": newPolledSource,
		"shared": func(t *testing.T) discovery.Source { return discovery.Shared(t.Name(), 0, newPolledSource(t)) },
		"lingering": func(t *testing.T) discovery.Source {
			return discovery.Shared(t.Name(), 10*time.Second, newPolledSource(t))
		},
	} {
		t.Run(name, func(t *testing.T) { sourcetest.Run(t, source) })
	}
}
