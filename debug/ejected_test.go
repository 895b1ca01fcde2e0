package debug

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/understudy-lb/understudy/discovery"
)

// call calls, and returns the error.
func call(t *testing.T, cc *grpc.ClientConn) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := healthpb.NewHealthClient(cc).Check(ctx, &healthpb.HealthCheckRequest{})
	return err
}

// An endpoint that is ejected says why, and for how long.
func TestThePageSaysWhyAnEndpointIsEjected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &story{up: map[string]bool{"a": true, "b": true}, query: "?outlierDetection=true", sick: true}
		cc := tell(t, s, at(0, "us-east/a", "a", 1), at(0, "us-east/a", "b", 1))
		for range 9 {
			call(t, cc) // each endpoint fails some in a row, the first of them five
		}
		settle()
		c, page := channel(t)
		var ejected *Child
		for _, e := range c.Tree.Children[0].Below.Children[0].Below.Children {
			if e.Ejected != "" {
				ejected = e
			}
		}
		if ejected == nil {
			t.Fatalf("no endpoint is shown as ejected:\n%s", page)
		}
		if ejected.Ejected != "ejected by failures in a row, for 29 s more" || ejected.EjectedBy != "consecutive_failures" || ejected.State != connectivity.TransientFailure.String() {
			t.Errorf("the endpoint is %+v", ejected)
		}
		if left := time.Until(*ejected.EjectedUntil); left != 29*time.Second {
			t.Errorf("it is ejected for %v more, want 29 s", left)
		}
		wantTexts(t, page, "ejected by failures in a row, for 29 s more", "1 ejected; the endpoints are usable")
	})
}

// What the schedules gave each locality and endpoint is shown beside what was measured.
func TestThePageShowsScheduledPicks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &story{up: map[string]bool{"a": true, "b": true, "c": true}}
		cc := tell(t, s, at(0, "us-east/a", "a", 3), at(0, "us-east/a", "b", 1), at(0, "us-east/b", "c", 1))
		calls := func(n int) {
			for range n {
				if err := call(t, cc); err != nil {
					t.Fatal(err)
				}
			}
			settle()
		}
		calls(80)
		s.receiver.Update(discovery.Answer{Cluster: discovery.Cluster(at(0, "us-east/a", "a", 1), at(0, "us-east/a", "b", 3), at(0, "us-east/b", "c", 1))})
		settle()
		calls(10)
		c, page := channel(t)
		localities := c.Tree.Children[0].Below.Children
		var measured uint64
		for _, locality := range localities {
			var scheduled uint64
			for _, e := range locality.Below.Children {
				if e.Scheduled != e.Calls.Started {
					t.Errorf("%s was given %d calls by the schedule, and had %d", e.Name, e.Scheduled, e.Calls.Started)
				}
				scheduled += e.Scheduled
			}
			measured += scheduled
			if locality.Scheduled != scheduled || scheduled < 10 {
				t.Errorf("%s was given %d calls by the schedule, and its endpoints %d", locality.Name, locality.Scheduled, scheduled)
			}
		}
		if measured != 90 {
			t.Errorf("%d of 90 calls are shown:\n%s", measured, page)
		}
		wantTexts(t, page, `<td class="n" data-label="Scheduled">`, "· 18 calls scheduled")
	})
}
