package e2e

import (
	"os"
	"regexp"
	"slices"
	"testing"
)

// The manifests in examples/kubernetes give each account only the permissions that its program
// needs, and no container may be root. TestManifests of test/interop/kubernetes shows that an API
// server takes them.
func TestManifestsGiveFewPermissions(t *testing.T) {
	for name, account := range map[string]string{"client.yaml": "storefront", "serve.yaml": "understudy"} {
		text, err := os.ReadFile("../../examples/kubernetes/" + name)
		if err != nil {
			t.Fatal(err)
		}
		for pattern, want := range map[string][]string{
			`resources: (.*)`:              {"[endpointslices]"},
			`verbs: (.*)`:                  {"[list, watch]"},
			`subjects:\n((?:- .*\n)*)`:     {"- {kind: ServiceAccount, name: " + account + ", namespace: shop}\n"},
			`serviceAccountName: (.*)`:     {account},
			`kind: (Cluster\w+)`:           nil,
			`runAsNonRoot: (.*)`:           {"true"},
			`readOnlyRootFilesystem: (.*)`: {"true"},
		} {
			var got []string
			for _, match := range regexp.MustCompile(pattern).FindAllSubmatch(text, -1) {
				got = append(got, string(match[1]))
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: %s finds %q, want %q", name, pattern, got, want)
			}
		}
	}
}
