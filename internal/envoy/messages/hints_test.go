package messages_test

import (
	"fmt"
	"strings"
	"testing"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/understudy-lb/understudy/internal/envoy/messages"
)

// Valid hints in the metadata of an endpoint must be used, and invalid hints must be ignored.
func TestHintsInMetadata(t *testing.T) {
	long := `"` + strings.Repeat("a", 257) + `"`
	for metadata, want := range map[string]string{
		`{"understudy.dev": {"forZones": ["a", "b"], "forNodes": ["n"], "a": 1, "b": 1, "c": 1, "d": 1, "e": 1}, "a": {}, "b": {}, "c": {}, "d": {}, "e": {}, "f": {}}`: "[a b] [n]",
		`{"other": {"node": "n"}}`: "[] []",
		`{"understudy.dev": {"node": 1, "forZones": "a", "forNodes": {"n": 1}}}`:                                                         "[] []",
		`{"understudy.dev": {"node": "\u0007", "forZones": [1, "", "\n", null, ["a"], "z"]}}`:                                            "[z] []",
		`{"understudy.dev": {"node": ` + long + `, "forZones": [` + long + `]}}`:                                                         "[] []",
		`{"understudy.dev": {"forZones": ["b"` + strings.Repeat(`,"a"`, 63) + `], "forNodes": ["b"` + strings.Repeat(`,"a"`, 64) + `]}}`: "[b" + strings.Repeat(" a", 63) + "] []",
		`{"understudy.dev": {}}`: "[] []",
	} {
		var c endpointv3.ClusterLoadAssignment
		text := `{"clusterName": "c", "endpoints": [{"locality": {"zone": "z"}, "loadBalancingWeight": 1, "lbEndpoints": [{"metadata": {"filterMetadata": ` + metadata + `},
			"endpoint": {"address": {"socketAddress": {"address": "10.0.0.1", "portValue": 1}}}}]}]}`
		if err := protojson.Unmarshal([]byte(text), &c); err != nil {
			t.Fatalf("%.200s: %v", metadata, err)
		}
		again, _, _ := messages.Read(&c)
		a, _, err := messages.Read(&c)
		if err != nil {
			t.Fatalf("%.200s: %v", metadata, err)
		}
		e := a.Priorities[0].Localities[0].Endpoints[0]
		if got := fmt.Sprint(e.ForZones, " ", e.ForNodes); got != want || a.Identity == "" || again.Identity != a.Identity {
			t.Errorf("%.200s: %s and the identities %q, %q; want %s and the same identity", metadata, got, again.Identity, a.Identity, want)
		}
	}
}
