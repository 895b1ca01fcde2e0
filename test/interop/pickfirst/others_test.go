package pickfirst

import (
	"fmt"
	"testing"
	"testing/synctest"

	_ "google.golang.org/grpc/balancer/leastrequest"
	_ "google.golang.org/grpc/balancer/ringhash"
	_ "google.golang.org/grpc/balancer/weightedroundrobin"
)

// With our pick_first as the child policy of other gRPC-Go policies, no call may fail, even after a
// server has stopped.
func TestStockPoliciesOverPickFirst(t *testing.T) {
	for policy, config := range map[string]string{
		"weighted_round_robin":       `{}`,
		"least_request_experimental": `{"choiceCount": 2}`,
		"ring_hash_experimental":     `{"minRingSize": 10, "maxRingSize": 100, "requestHashHeader": "shop"}`,
		"pick_first":                 `{"shuffleAddressList": true}`,
	} {
		t.Run(policy, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				backends := startBackends(t, "a", "b", "c")
				before := built.Load()
				cc := dial(t, backends, fmt.Sprintf(`{"loadBalancingConfig": [{%q: %s}]}`, policy, config))
				answers := callAll(cc, 60)
				if answers[""] > 0 || built.Load() == before {
					t.Errorf("60 calls reached %v, %d of our policies were built", answers, built.Load()-before)
				}
				for name := range answers {
					backends[name].stop()
					break
				}
				synctest.Wait()
				if answers := callAll(cc, 60); answers[""] > 0 {
					t.Errorf("with one server stopped 60 calls reached %v", answers)
				}
			})
		})
	}
}
