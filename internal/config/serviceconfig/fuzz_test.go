package serviceconfig

import (
	"encoding/json"
	"strings"
	"testing"
)

// FuzzServiceConfig checks that a service config is either rejected with a one-line error, or
// merged with the other options. gRPC must accept the merged config, and it must still have the
// user's fields.
func FuzzServiceConfig(f *testing.F) {
	for _, seed := range []string{
		"", `{}`, `{"methodConfig":[{"name":[{"service":"a"}],"timeout":"1s"}]}`, `{"METHODCONFIG":null}`, `{"retryThrottling":{}}`, `{"loadBalancingConfig":[]}`,
		`{"LoadBalancingPolicy":"x"}`, `{"a":1,"a":2}`, `[]`, `null`, `{} {}`, `{"methodConfig":{}}`, `{"x":"\ud800"}`, `{"healthcheckconfig":{"serviceName":"x"}}`, "{\x00",
	} {
		f.Add(seed, true)
		f.Add(seed, false)
	}
	f.Fuzz(func(t *testing.T, text string, setOptions bool) {
		o := Options{ServiceConfig: text}
		if setOptions {
			o.RetryMethods, o.MaxTokens, o.TokenRatio, o.HealthCheck = []string{"/a.B/C", "/a.B/"}, 10, 0.1, true
		}
		merged, err := Make(o)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\r\x00\x1b") || len(err.Error()) > 2000 {
				t.Errorf("error is not a short line: %.3000q", err)
			}
			return
		}
		if merged == "" || Check(text) != nil {
			return
		}
		if err := Check(merged); err != nil {
			t.Errorf("%s becomes %s: %v", text, merged, err)
		}
		var before, after map[string]json.RawMessage
		if err := json.Unmarshal([]byte(merged), &after); err != nil {
			t.Fatal(err)
		}
		_ = json.Unmarshal([]byte(text), &before)
		for name := range before {
			if _, kept := after[name]; !kept && !strings.EqualFold(name, "methodConfig") {
				t.Errorf("%s becomes %s, without %q", text, merged, name)
			}
		}
	})
}
