package weightedtarget_test

import (
	"fmt"

	"google.golang.org/grpc/balancer"
	_ "google.golang.org/grpc/balancer/roundrobin"

	"github.com/understudy-lb/understudy/policy/weightedtarget"
)

func Example() {
	parser := balancer.Get(weightedtarget.Name).(balancer.ConfigParser)
	_, err := parser.ParseConfig([]byte(`{"targets": {
		"us-east/a": {"weight": 3, "childPolicy": [{"round_robin": {}}]},
		"us-east/b": {"weight": 0, "childPolicy": [{"round_robin": {}}]}
	}}`))
	fmt.Println(err)
	// Output: weighted_target: targets["us-east/b"].weight: 0 or none given, want 1 to 4294967295
}
