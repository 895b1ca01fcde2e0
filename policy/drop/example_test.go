package drop_test

import (
	"fmt"

	"google.golang.org/grpc/balancer"
	_ "google.golang.org/grpc/balancer/roundrobin"

	"github.com/understudy-lb/understudy/policy/drop"
)

func Example() {
	parser := balancer.Get(drop.Name).(balancer.ConfigParser)
	_, err := parser.ParseConfig([]byte(`{
		"dropCategories": [{"category": "throttle", "requestsPerMillion": 2000000}],
		"childPolicy": [{"round_robin": {}}]
	}`))
	fmt.Println(err)
	// Output: drop: dropCategories[0].requestsPerMillion: 2000000 given, want 0 to 1000000
}
