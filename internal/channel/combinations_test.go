package channel_test

import (
	"os"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/understudy-lb/understudy"
	"github.com/understudy-lb/understudy/internal/config/options"
)

// combinations are the rows of the page's table. Each reports what a policy does.
var combinations = map[string]func(policy string) string{
	"weights of endpoints": func(policy string) string {
		switch e := options.EndpointPolicy(policy); {
		case e.IgnoresWeights():
			return "no"
		case policy == "round_robin": // a policy of the user's own
			return "up to the policy"
		}
		return "yes"
	},
	"`OutlierDetection`": accepted(func(o *understudy.Options) { o.OutlierDetection = understudy.On }),
	"`Subset`":           accepted(func(o *understudy.Options) { o.Subset = 2 }),
	"`SlowStart`":        accepted(func(o *understudy.Options) { o.SlowStart = 1 }),
	"one list of a priority's endpoints": func(policy string) string {
		if (options.Settings{EndpointPolicy: options.EndpointPolicy(policy)}).InOneList() {
			return "always"
		}
		return "`PerPriority`"
	},
}

func accepted(set func(*understudy.Options)) func(policy string) string {
	return func(policy string) string {
		o := understudy.Options{EndpointPolicy: policy}
		set(&o)
		cc, err := understudy.NewClient("failover:///dns:///a", o, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return "no"
		}
		_ = cc.Close()
		return "yes"
	}
}

// The page says which options can be combined with which policy.
func TestEndpointPolicyCombinations(t *testing.T) {
	page, err := os.ReadFile("../../docs/howto/endpoint-policy.md")
	if err != nil {
		t.Fatal(err)
	}
	policies := []string{"weighted_round_robin", "pick_first", "least_request_experimental", "weighted_round_robin{}", `ring_hash_experimental{"requestHashHeader":"user"}`, "round_robin"}
	rows := 0
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "| "), " | ")
		does := combinations[cells[0]]
		if does == nil {
			continue
		}
		rows++
		for i, policy := range policies {
			if got := does(policy); len(cells) != len(policies)+1 || got != cells[i+1] {
				t.Errorf("%s with %s: %s, but the page has %s", cells[0], policy, got, cells[1:])
			}
		}
	}
	if rows != len(combinations) {
		t.Errorf("the page has %d rows, want %d", rows, len(combinations))
	}
}
