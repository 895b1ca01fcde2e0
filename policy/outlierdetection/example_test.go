package outlierdetection_test

import (
	"fmt"

	"google.golang.org/grpc/balancer"
	_ "google.golang.org/grpc/balancer/roundrobin"

	"github.com/understudy-lb/understudy/policy/outlierdetection"
)

func Example() {
	parser := balancer.Get(outlierdetection.Name).(balancer.ConfigParser)
	for _, config := range []string{
		`{"failurePercentageEjection": {"threshold": 120}, "childPolicy": [{"round_robin": {}}]}`,
		`{"consecutiveFailuresEjection": {}, "childPolicy": [{"pick_first": {}}]}`,
	} {
		_, err := parser.ParseConfig([]byte(config))
		fmt.Println(err)
	}
	// Output:
	// outlier_detection: failurePercentageEjection.threshold: 120 given, want 0 to 100
	// outlier_detection: childPolicy: pick_first given, which would not notice that an endpoint is ejected; want a policy that has a pick_first of its own for each endpoint, such as understudy_weighted_round_robin
}
