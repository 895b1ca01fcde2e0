package weightedtarget

import (
	"encoding/json"
	"strings"
	"testing"

	"google.golang.org/grpc/balancer"
	_ "google.golang.org/grpc/balancer/roundrobin" // registers round_robin

	"github.com/understudy-lb/understudy/internal/config/lbconfig"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

func TestParseConfigNamesTheField(t *testing.T) {
	child := `"childPolicy": [{"round_robin": {}}]`
	lbtest.CheckConfigErrors(t, newBuilder(Name), "weighted_target: ", map[string]string{
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
	})
}

func parseConfig(raw []byte) (*lbconfig.WeightedTarget, error) {
	c, err := newBuilder(Name).(balancer.ConfigParser).ParseConfig(raw)
	if err != nil {
		return nil, err
	}
	return c.(*lbconfig.WeightedTarget), nil
}

func TestConfigSurvivesRoundTrips(t *testing.T) {
	_, last := lbtest.CheckRoundTrips(t, newBuilder(Name), `{"targets": {"a": {"weight": 2, "childPolicy": [{"unknown": {}}, {"round_robin": {}}]}},
		"removedChildRetention": "60s", "startPoint": "random", "unknown": 1}`)
	if b, _ := json.Marshal(last); !strings.Contains(string(b), `"60s"`) || !strings.Contains(string(b), `"random"`) {
		t.Errorf("after round trips: %s", b)
	}
}
