package lbtest

import (
	"encoding/json"
	"strings"
	"testing"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/serviceconfig"
)

func CheckConfigErrors(t *testing.T, builder balancer.Builder, prefix string, wantErrors map[string]string) {
	t.Helper()
	for raw, want := range wantErrors {
		c, err := builder.(balancer.ConfigParser).ParseConfig([]byte(raw))
		if err == nil || c != nil {
			t.Errorf("%s is accepted as %+v, error %v", raw, c, err)
		} else if got := err.Error(); !strings.HasPrefix(got, prefix+want) || strings.Contains(got, "\n") {
			t.Errorf("%s:\n  error %q\n  want prefix %q", raw, got, prefix+want)
		}
	}
}

// CheckRoundTrips parses a configuration, marshals the result to JSON, and parses that JSON again,
// several times, as grpc-go's cds policy does. It checks that the JSON never changes, and returns
// the results of the first and the last parsing.
func CheckRoundTrips(t *testing.T, builder balancer.Builder, raw string) (first, last serviceconfig.LoadBalancingConfig) {
	t.Helper()
	var text []byte
	for i := range 9 {
		c, err := builder.(balancer.ConfigParser).ParseConfig([]byte(raw))
		if err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		marshalled, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first, text = c, marshalled
		} else if string(marshalled) != string(text) {
			t.Fatalf("%s became %s after %d round trips", text, marshalled, i)
		}
		last, raw = c, string(marshalled)
	}
	return first, last
}
