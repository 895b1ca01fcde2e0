package discovery_test

import (
	"testing"
	"time"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/discovery/sourcetest"
)

// A source that wraps a gRPC resolver must pass sourcetest, with and without Refreshed, whether the
// resolver answers or fails.
func TestResolverSourceContract(t *testing.T) {
	t.Parallel()
	for about, answers := range map[string][]string{
		"well":     {"a:1"},
		"broken":   {"!no such host"},
		"restless": {"a:1", "!time-out", "b:1", "a:1"},
	} {
		for _, every := range []time.Duration{0, time.Second, time.Minute} {
			t.Run(about+" "+every.String(), func(t *testing.T) {
				sourcetest.Run(t, func(*testing.T) discovery.Source {
					z := &zone{answers: answers, start: time.Now(), latency: 300 * time.Millisecond}
					inner := discovery.FromResolver(z, target("zone:///z"), &channel{}, resolver.BuildOptions{})
					return discovery.Refreshed(inner, discovery.Refresh{Every: every, RemoveAfter: 2})
				})
			})
		}
	}
}
