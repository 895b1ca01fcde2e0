//go:build kubernetes

package kubernetes

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	version   = regexp.MustCompile(`(?m)^apiVersion: (\S+)$`)
	kind      = regexp.MustCompile(`(?m)^kind: (\S+)$`)
	namespace = regexp.MustCompile(`\bnamespace: ([-a-z]+)`)
)

func (a *api) apply(t *testing.T, text, query string) (all []reply) {
	t.Helper()
	for part := range strings.SplitSeq(text, "\n---\n") {
		v, k, n := version.FindStringSubmatch(part), kind.FindStringSubmatch(part), namespace.FindStringSubmatch(part)
		if v == nil || k == nil || n == nil {
			t.Fatalf("a manifest lacks version, kind or namespace: %s", part)
		}
		root := "/apis/"
		if !strings.Contains(v[1], "/") {
			root = "/api/"
		}
		r, err := a.send(t.Context(), http.MethodPost, root+v[1]+"/namespaces/"+n[1]+"/"+strings.ToLower(k[1])+"s"+query, part)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

// The API server must accept the example manifests. They must cause no warnings, and contain no
// unknown fields.
func TestManifests(t *testing.T) {
	shared.must(t, http.MethodPost, "/api/v1/namespaces", object{"metadata": object{"name": "examples"}}, nil)
	files, err := filepath.Glob("../../../examples/kubernetes/*.yaml")
	if err != nil || len(files) < 2 {
		t.Fatalf("examples are %v, %v", files, err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		there := strings.ReplaceAll(string(text), "namespace: shop", "namespace: examples")
		for i, r := range shared.apply(t, there, "?dryRun=All&fieldValidation=Strict") {
			if r.code != http.StatusCreated || len(r.warnings) > 0 {
				t.Errorf("%s: the response to document %d is %d, warnings %s: %s", filepath.Base(name), i+1, r.code, r.warnings, r.body)
			}
		}
	}
}
