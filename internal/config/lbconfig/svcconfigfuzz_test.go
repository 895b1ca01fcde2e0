package lbconfig

import (
	"encoding/json"
	"strings"
	"testing"
)

// FuzzServiceConfig checks that a service config is either refused with a one-line error, or keeps
// all its fields when load balancing is added to it.
func FuzzServiceConfig(f *testing.F) {
	for _, seed := range []string{"", `{}`, `{"methodConfig":[{"name":[{}]}]}`, `{"loadbalancingconfig":1}`, `{"a":{"b":null}}`, `{} x`, `null`, `[`, "{\"\x00\":1}", `{"\u2028":"\ud800"}`} {
		f.Add(seed)
	}
	const added = `[{"priority":{}}]`
	f.Fuzz(func(t *testing.T, user string) {
		merged, err := MergeServiceConfig(user, json.RawMessage(added))
		if again := CheckServiceConfig(user); (err == nil) != (again == nil) {
			t.Errorf("%q: the check returns %v, and the merge %v", user, again, err)
		}
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\r\x00\x1b") || len(err.Error()) > 2000 {
				t.Errorf("error is not a short line: %.3000q", err)
			}
			return
		}
		var before, after map[string]json.RawMessage
		if err := json.Unmarshal([]byte(merged), &after); err != nil {
			t.Fatal(err)
		}
		_ = json.Unmarshal([]byte(user), &before)
		if len(after) != len(before)+1 || string(after["loadBalancingConfig"]) != added {
			t.Errorf("%q becomes %s", user, merged)
		}
	})
}
