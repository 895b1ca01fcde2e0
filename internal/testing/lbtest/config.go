package lbtest

import (
	"encoding/json"
	"strings"
	"testing"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/serviceconfig"
)

func Refuses(t *testing.T, builder balancer.Builder, prefix string, errors map[string]string) {
	t.Helper()
	for raw, want := range errors {
		c, err := builder.(balancer.ConfigParser).ParseConfig([]byte(raw))
		if err == nil || c != nil {
			t.Errorf("%s is accepted as %+v, error %v", raw, c, err)
		} else if got := err.Error(); !strings.HasPrefix(got, prefix+want) || strings.Contains(got, "\n") {
			t.Errorf("%s:\n  error %q\n  want prefix %q", raw, got, prefix+want)
		}
	}
}

// RoundTrips parses a configuration. Like grpc-go's cds policy, it then marshals the result and
// parses it again, several times. It checks that the JSON stays the same, and returns the first and
// the last result.
func RoundTrips(t *testing.T, builder balancer.Builder, raw string) (first, last serviceconfig.LoadBalancingConfig) {
	t.Helper()
	var text []byte
	for i := range 9 {
		c, err := builder.(balancer.ConfigParser).ParseConfig([]byte(raw))
		if err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		again, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first, text = c, again
		} else if string(again) != string(text) {
			t.Fatalf("%s became %s after %d round trips", text, again, i)
		}
		last, raw = c, string(again)
	}
	return first, last
}
