package lbconfig

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestMergeKeepsUserFields(t *testing.T) {
	lb := json.RawMessage(`[{"understudy_priority":{}}]`)
	for _, test := range []struct{ user, want string }{
		{"", `{"loadBalancingConfig":[{"understudy_priority":{}}]}`},
		{"{}", `{"loadBalancingConfig":[{"understudy_priority":{}}]}`},
		{
			`{"methodConfig":[{"name":[{}]}],"healthCheckConfig":{"serviceName":""}}`,
			`{"healthCheckConfig":{"serviceName":""},"loadBalancingConfig":[{"understudy_priority":{}}],"methodConfig":[{"name":[{}]}]}`,
		},
	} {
		got, err := MergeServiceConfig(test.user, lb)
		if err != nil || got != test.want {
			t.Errorf("MergeServiceConfig(%q) = %s, %v\nwant %s", test.user, got, err, test.want)
		}
	}
}

func TestCheckServiceConfigErrors(t *testing.T) {
	for user, want := range map[string]string{
		`[]`:                                 "want a JSON object",
		`null`:                               "got null",
		`{`:                                  "want a JSON object",
		`{} {}`:                              "data after",
		`{"loadBalancingConfig":[]}`:         "loadBalancingConfig is set by the resolver",
		`{"loadBalancingPolicy":"anything"}`: "loadBalancingPolicy is set by the resolver",
	} {
		if err := CheckServiceConfig(user); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("CheckServiceConfig(%s) = %v, want an error with %q", user, err, want)
		}
	}
}

// gRPC ignores the case of field names. A load-balancing field in another case would therefore
// replace the resolver's, and must be refused.
func TestCheckServiceConfigIgnoresCase(t *testing.T) {
	for _, user := range []string{`{"loadbalancingconfig": []}`, `{"LoadBalancingPolicy": "round_robin"}`} {
		if err := CheckServiceConfig(user); err == nil {
			t.Errorf("%s is accepted", user)
		}
	}
}
