package adsclient

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/understudy-lb/understudy/internal/testing/adstest"
)

func TestReturningServerWithRejectedResource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad := adstest.Cluster("b", "10.0.0.3:1")
		bad.Endpoints[0].Priority = 7
		first := func(s *adstest.Stream) error {
			return errors.Join(s.Respond("1", "n", adstest.Cluster("a", "10.0.0.1:1"), bad), s.Drain())
		}
		second := func(s *adstest.Stream) error {
			return errors.Join(s.Respond("1", "n", adstest.Cluster("a", "10.0.0.1:1", "10.0.0.2:1"), adstest.Cluster("b", "10.0.0.3:1")), s.Drain())
		}
		m := startManagers(t, map[string]adstest.Script{"first": first, "second": second})
		m["first"].stop()
		n := new(recordingWatcher)
		defer Follow(Target{
			Cluster: "a",
			Servers: []Server{m["first"].serverConfig(), m["second"].serverConfig()},
			Needs:   func(map[string]State) Needs { return Needs{Endpoints: []string{"a", "b"}} },
		}, recordingFollower{n}, nil).Stop()
		if got := n.take(); !slices.Contains(got, "a:2") {
			t.Fatalf("received %q, want the second server's endpoints", got)
		}
		m["first"].start()
		sleep(reconnectTime)
		if got := n.take(); !slices.Contains(got, "a:1") {
			t.Errorf("received %q, want the first server's endpoints", got)
		}
	})
}
