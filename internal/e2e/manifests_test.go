package e2e

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

type manifest struct {
	Kind     string
	Metadata struct{ Name, Namespace string }
	Rules    []struct{ Resources, Verbs []string }
	RoleRef  struct{ Kind, Name string } `yaml:"roleRef"`
	Subjects []struct{ Kind, Name, Namespace string }
	Spec     struct {
		Selector any
		Template struct {
			Spec struct {
				ServiceAccountName string `yaml:"serviceAccountName"`
				Containers         []struct {
					Args            []string
					SecurityContext struct {
						RunAsNonRoot           bool `yaml:"runAsNonRoot"`
						ReadOnlyRootFilesystem bool `yaml:"readOnlyRootFilesystem"`
					} `yaml:"securityContext"`
				}
			}
		}
	}
}

func manifests(t *testing.T, name string) (all []manifest) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "examples", "kubernetes", name))
	if err != nil {
		t.Fatal(err)
	}
	for d := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var m manifest
		switch err := d.Decode(&m); {
		case errors.Is(err, io.EOF):
			return all
		case err != nil:
			t.Fatalf("%s: %v", name, err)
		}
		all = append(all, m)
	}
}

// The manifests in examples/kubernetes give each account only the permissions that its program
// needs.
func TestManifestsFitTogether(t *testing.T) {
	for name, kinds := range map[string]string{
		"client.yaml": "ServiceAccount Role RoleBinding Deployment",
		"serve.yaml":  "ServiceAccount Role RoleBinding Deployment PodDisruptionBudget Service",
	} {
		byKind := make(map[string]manifest)
		var got []string
		for _, m := range manifests(t, name) {
			byKind[m.Kind] = m
			got = append(got, m.Kind)
			if m.Metadata.Namespace != "shop" {
				t.Errorf("%s: %s is in the namespace %q", name, m.Kind, m.Metadata.Namespace)
			}
		}
		if strings.Join(got, " ") != kinds {
			t.Errorf("%s has %v, want %s", name, got, kinds)
			continue
		}
		account, binding, pod := byKind["ServiceAccount"].Metadata.Name, byKind["RoleBinding"], byKind["Deployment"].Spec.Template.Spec
		if pod.ServiceAccountName != account || len(binding.Subjects) != 1 || binding.Subjects[0].Name != account || binding.Subjects[0].Namespace != "shop" || binding.RoleRef.Name != byKind["Role"].Metadata.Name {
			t.Errorf("%s: the account of the pod is %q, of the binding %v to %s", name, pod.ServiceAccountName, binding.Subjects, binding.RoleRef.Name)
		}
		rules := byKind["Role"].Rules
		if len(rules) != 1 || strings.Join(rules[0].Resources, " ") != "endpointslices" || strings.Join(rules[0].Verbs, " ") != "list watch" {
			t.Errorf("%s: the role has %v, want list and watch of endpointslices", name, rules)
		}
		if c := pod.Containers[0]; !c.SecurityContext.RunAsNonRoot || !c.SecurityContext.ReadOnlyRootFilesystem {
			t.Errorf("%s: the container may be root, or write to its root", name)
		}
	}
}
