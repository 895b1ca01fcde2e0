package policy

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"google.golang.org/grpc/balancer"
	grpcpickfirst "google.golang.org/grpc/balancer/pickfirst"
	_ "google.golang.org/grpc/balancer/roundrobin"

	"github.com/understudy-lb/understudy/internal/lb/shell"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
	"github.com/understudy-lb/understudy/policy/weightedtarget"
)

// Names are registered for the whole process, so this test runs in its own process.
func TestRegisterSpecNames(t *testing.T) {
	const variable = "UNDERSTUDY_TEST_SPEC_NAMES"
	if os.Getenv(variable) == "" {
		command := exec.Command(os.Args[0], "-test.run=^TestRegisterSpecNames$", "-test.count=1")
		command.Env = append(os.Environ(), variable+"=1")
		if out, err := command.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	other := &lbtest.StubBuilder{PolicyName: "weighted_target_experimental"}
	balancer.Register(other)
	err := RegisterSpecNames(ReplacePickFirst())
	if err == nil || !strings.Contains(err.Error(), "weighted_target_experimental (*lbtest.StubBuilder)") {
		t.Errorf("error = %v, want one with the name and the type of the policy", err)
	}
	if balancer.Get("priority_experimental") != nil || isOurs(balancer.Get(grpcpickfirst.Name)) {
		t.Error("policies were registered although one name was taken")
	}

	balancer.Register(shell.NewBuilder(weightedtarget.Name, "weighted_target_experimental"))
	for range 2 {
		if err := RegisterSpecNames(); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"priority_experimental", "weighted_target_experimental"} {
		if b := balancer.Get(name); b == nil || !isOurs(b) || b.Name() != name {
			t.Errorf("%s is registered as %v, want ours", name, b)
		}
	}
	if isOurs(balancer.Get(grpcpickfirst.Name)) || balancer.Get("weighted_round_robin") != nil {
		t.Error("a policy was replaced without its option")
	}

	if err := RegisterSpecNames(ReplacePickFirst(), ReplaceWeightedRoundRobin()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{grpcpickfirst.Name, "weighted_round_robin"} {
		if b := balancer.Get(name); b == nil || !isOurs(b) {
			t.Errorf("%s is registered as %v, want ours", name, b)
		}
	}
}

func TestSpecConfigsParse(t *testing.T) {
	if err := RegisterSpecNames(); err != nil {
		t.Fatal(err)
	}
	parser := balancer.Get("priority_experimental").(balancer.ConfigParser)
	_, err := parser.ParseConfig([]byte(`{
		"children": {"p0": {"config": [{"weighted_target_experimental": {
			"targets": {"a": {"weight": 1, "childPolicy": [{"round_robin": {}}]}}
		}}], "ignoreReresolutionRequests": true}},
		"priorities": ["p0"]
	}`))
	if err != nil {
		t.Error(err)
	}
}
