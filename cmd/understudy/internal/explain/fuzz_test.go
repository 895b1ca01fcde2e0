package explain

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode"
)

// FuzzFile explains arbitrary files. Each file either has shares whose sum is at most 1, or is
// rejected with an error that contains no control characters.
func FuzzFile(f *testing.F) {
	const endpoint = "{lb_endpoints: [{endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 1}}}}, {endpoint: {address: {socket_address: {address: 10.0.0.2, port_value: 1}}}}]}"
	for _, seed := range []string{
		"endpoints: [" + endpoint + "]", "endpoints:\n- " + endpoint + "\n- " + strings.Replace(endpoint, "{lb", `{priority: 1, locality: {zone: "z\x1b"}, lb`, 1),
		`- {name: "a\u202e", type: STATIC, load_assignment: {endpoints: [` + endpoint + `]}}`, "endpoints: []", "policy: {drop_overloads: [{category: 'a\x07', drop_percentage: {numerator: 50}}]}\nendpoints: [" + endpoint + "]", "[", "\x00",
	} {
		f.Add([]byte(seed), true)
		f.Add([]byte(seed), false)
	}
	isControl := func(r rune) bool { return r != '\n' && unicode.In(r, unicode.C, unicode.Zl, unicode.Zp) }
	f.Fuzz(func(t *testing.T, data []byte, asJSON bool) {
		if len(data) > 1<<12 {
			return
		}
		var out bytes.Buffer
		err := Run(t.Context(), Options{File: "-", In: bytes.NewReader(data), Out: &out, JSON: asJSON})
		if err != nil && !errors.Is(err, ErrNoEndpoint) {
			if _, wrong := errors.AsType[*OutputError](err); wrong || strings.ContainsFunc(err.Error(), isControl) {
				t.Errorf("error %q", err)
			}
			return
		}
		if strings.ContainsFunc(out.String(), isControl) {
			t.Errorf("the output is %q", out.String())
		}
		var r struct {
			Clusters []*Result
			Result
		}
		if !asJSON {
			return
		}
		if err := json.Unmarshal(out.Bytes(), &r); err != nil {
			t.Fatalf("%s: %v", out.String(), err)
		}
		for _, result := range append(r.Clusters, &r.Result) {
			sum := 0.0
			for _, e := range result.Endpoints {
				sum += e.Share
			}
			if sum > 1.0001 || err == nil && len(r.Clusters) == 0 && sum == 0 && result.Dropped < 0.9999 {
				t.Errorf("the shares sum to %v:\n%s", sum, out.String())
			}
		}
	})
}
