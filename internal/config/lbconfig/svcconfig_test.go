package lbconfig

import (
	"strings"
	"testing"
)

func TestCheckServiceConfigErrors(t *testing.T) {
	for user, want := range map[string]string{
		`[]`:                                 "want a JSON object",
		`null`:                               "got null",
		`{`:                                  "want a JSON object",
		`{} {}`:                              "data after",
		`{"loadBalancingConfig":[]}`:         "loadBalancingConfig is set by the resolver",
		`{"loadBalancingPolicy":"anything"}`: "loadBalancingPolicy is set by the resolver",
		// gRPC ignores the case of field names.
		`{"loadbalancingconfig": []}`: "is set by the resolver",
		`{"LoadBalancingPolicy": ""}`: "is set by the resolver",
	} {
		if err := CheckServiceConfig(user); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("CheckServiceConfig(%s) = %v, want an error with %q", user, err, want)
		}
	}
}
