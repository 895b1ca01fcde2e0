package options

import (
	"strings"
	"testing"

	_ "google.golang.org/grpc/balancer/ringhash"
)

func TestEndpointPolicyIsChecked(t *testing.T) {
	for policy, want := range map[EndpointPolicy]string{
		"":                     "",
		"weighted_round_robin": "",
		`ring_hash_experimental{"requestHashHeader": "user", "minRingSize": 64}`: "",
		"ring_hash_experimental": "without requestHashHeader",
		`ring_hash_experimental{"requestHashHeader": "user", "minRingSize": -1}`: "ring_hash_experimental: ",
		`ring_hash_experimental{"requestHashHeader"`:                             "as a JSON object",
		"least_request_experimental":                                             `is not registered, want import _ "google.golang.org/grpc/balancer/leastrequest"`,
		"weighted_round_robin{}":                                                 `import _ "google.golang.org/grpc/balancer/weightedroundrobin"`,
		"best":                                                                   "whose package the program imports",
		EndpointPolicy(strings.Repeat("x", 20_000)):                              "20000 bytes given, want at most 10000",
	} {
		err := policy.check()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v, want %q", policy, err, want)
		}
	}
}
