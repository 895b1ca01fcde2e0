package understudy_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/understudy-lb/understudy"
	"github.com/understudy-lb/understudy/discovery"
)

func init() {
	discovery.Register(discovery.NewBuilder("understudytest", func(*discovery.Target) ([]discovery.Part, error) {
		return []discovery.Part{{Source: discovery.Poll(time.Hour, func(context.Context) (discovery.Answer, error) {
			return discovery.Answer{}, context.Canceled
		})}}, nil
	}))
}

// callError returns the error of a call on a channel with the given options.
func callError(t *testing.T, target string, opts ...grpc.DialOption) string {
	t.Helper()
	conn, err := grpc.NewClient(target, append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err = conn.Invoke(ctx, "/s/m", nil, nil); err == nil {
		t.Fatalf("%s: the call succeeds", target)
	}
	return err.Error()
}

var (
	good = discovery.WithServiceConfig(`{"methodConfig":[]}`)
	bad  = discovery.WithServiceConfig("[]")
)

const complaint = "service config: want a JSON object"

// One option holds for all sources, those of others included.
func TestWithHoldsForEverySource(t *testing.T) {
	for _, target := range []string{"file:///none", "eds://127.0.0.1:1/c", "failover:///127.0.0.1:1", "understudytest:///x"} {
		if got := callError(t, target, understudy.With(bad)); !strings.Contains(got, complaint) {
			t.Errorf("%s: %s, want an error about the option", target, got)
		}
		if got := callError(t, target, understudy.With(good)); strings.Contains(got, complaint) {
			t.Errorf("%s: %s, want no error about the option", target, got)
		}
	}
}

// Of several on one channel the first holds, whole.
func TestTheFirstWithHolds(t *testing.T) {
	const target = "file:///none"
	if got := callError(t, target, understudy.With(bad), understudy.With(good)); !strings.Contains(got, complaint) {
		t.Errorf("bad before good: %s, want the first to hold", got)
	}
	if got := callError(t, target, understudy.With(good), understudy.With(bad)); strings.Contains(got, complaint) {
		t.Errorf("good before bad: %s, want the first to hold", got)
	}
	if got := callError(t, target, understudy.With(), understudy.With(bad)); strings.Contains(got, complaint) {
		t.Errorf("nothing before bad: %s, want the first to hold", got)
	}
}

// Options of several sources go into one With.
func TestOptionsAddUpInOneWith(t *testing.T) {
	got := callError(t, "failover:///127.0.0.1:1?authority=a", understudy.With(good, discovery.WithFailoverTimeout(-1)))
	if !strings.Contains(got, "failoverTimeout") {
		t.Errorf("%s, want an error about the time-out", got)
	}
}
