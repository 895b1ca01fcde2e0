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
	discovery.Register("understudytest", func(*discovery.Target) ([]discovery.Mechanism, error) {
		return []discovery.Mechanism{{Source: discovery.Poll(time.Hour, func(context.Context) (discovery.Answer, error) {
			return discovery.Answer{}, context.Canceled
		})}}, nil
	})
}

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

func TestDialOptionsApplyToEverySource(t *testing.T) {
	const wantErr = "ServiceConfig: service config: want a JSON object"
	good, bad := understudy.Options{ServiceConfig: `{"methodConfig":[]}`}, understudy.Options{ServiceConfig: "[]"}
	for _, target := range []string{"file:///none", "eds://127.0.0.1:1/c", "failover:///127.0.0.1:1", "understudytest:///x"} {
		if got := callError(t, target, bad.DialOptions()...); !strings.Contains(got, wantErr) {
			t.Errorf("%s: %s, want an error about ServiceConfig", target, got)
		}
		if got := callError(t, target, good.DialOptions()...); strings.Contains(got, wantErr) {
			t.Errorf("%s: %s, want no error about ServiceConfig", target, got)
		}
		// If DialOptions are given twice, the first ones apply.
		if got := callError(t, target, append(good.DialOptions(), bad.DialOptions()...)...); strings.Contains(got, wantErr) {
			t.Errorf("%s: good before bad: %s, want the first to apply", target, got)
		}
	}
}
