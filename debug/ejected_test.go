package debug

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
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
