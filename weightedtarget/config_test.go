package weightedtarget

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/grpc/balancer"
	_ "google.golang.org/grpc/balancer/roundrobin" // a child policy

	"github.com/understudy-lb/understudy/internal/lbconfig"
)

func TestParseConfigNamesTheField(t *testing.T) {
	child := `"childPolicy": [{"round_robin": {}}]`
	for raw, want := range map[string]string{
		`[]`:                     "[] given, want a JSON object",
		`{"targets": []}`:        "targets: [] given, want a JSON object",
		`{"targets": {"a": {}}}`: `targets["a"].weight: 0 or none given, want 1 to 4294967295`,
		`{"targets": {"a": {"weight": -1, ` + child + `}}}`:                                            `targets["a"].weight: -1 given, want a whole number from 0 to 4294967295`,
		`{"targets": {"a": {"weight": 4294967296, ` + child + `}}}`:                                    `targets["a"].weight: 4294967296 given`,
		`{"targets": {"a": {"weight": 1}}}`:                                                            `targets["a"].childPolicy: none given`,
		`{"targets": {"a": {"weight": 1, "childPolicy": [{"no_such": {}}]}}}`:                          `targets["a"].childPolicy: none of the policies is registered: "no_such"`,
		`{"targets": {"a": {"weight": 4294967295, ` + child + `}, "b": {"weight": 1, ` + child + `}}}`: `targets: the weights sum to 4294967296, want at most 4294967295`,
		`{"startPoint": "middle"}`:                                                                     `startPoint: "middle" given, want "spec" or "random"`,
		`{"removedChildRetention": "-1s"}`:                                                             `removedChildRetention: "-1s" given`,
	} {
		c, err := parseConfig([]byte(raw))
		if err == nil {
			t.Errorf("%s is accepted as %+v", raw, c)
		} else if got := err.Error(); !strings.Contains(got, want) || !strings.HasPrefix(got, "weighted_target: ") {
			t.Errorf("%s:\nerror = %q\nwant it to contain %q", raw, got, want)
		}
	}
}

func parseConfig(raw []byte) (*lbconfig.WeightedTarget, error) {
	c, err := newBuilder(Name).(balancer.ConfigParser).ParseConfig(raw)
	if err != nil {
		return nil, err
	}
	return c.(*lbconfig.WeightedTarget), nil
}

func TestConfigSurvivesRoundTrips(t *testing.T) {
	parser := balancer.Get(Name).(balancer.ConfigParser)
	first, err := parser.ParseConfig([]byte(`{"targets": {"a": {"weight": 2, "childPolicy": [{"unknown": {}}, {"round_robin": {}}]}},
		"removedChildRetention": "60s", "startPoint": "random", "unknown": 1}`))
	if err != nil {
		t.Fatal(err)
	}
	config := first
	for range 8 {
		raw, err := json.Marshal(config)
		if err != nil {
			t.Fatal(err)
		}
		if config, err = parser.ParseConfig(raw); err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
	}
	a, _ := json.Marshal(first)
	b, _ := json.Marshal(config)
	if !reflect.DeepEqual(a, b) || !strings.Contains(string(b), `"60s"`) || !strings.Contains(string(b), `"random"`) {
		t.Errorf("%s became %s after 8 round trips", a, b)
	}
}
