// Package arch tests rules of the repository: which packages may import which, the dependencies of
// the root module, its public surface, and the structure of code and documents.
package arch

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

const root = "github.com/understudy-lb/understudy"

type pkg struct {
	ImportPath string
	Name       string
	Standard   bool
	Imports    []string
	Deps       []string
	Module     *struct{ Path string }
}

func list(t *testing.T, args ...string) []pkg {
	t.Helper()
	command := exec.Command("go", append([]string{"list", "-json=ImportPath,Name,Standard,Imports,Deps,Module"}, args...)...)
	command.Dir = "../.."
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%v: %v", command.Args, err)
	}
	var packages []pkg
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
}

// directoryOf returns the directory of a package in the root module. It returns false for a package of
// another module.
func directoryOf(importPath string) (string, bool) {
	if importPath == root {
		return ".", true
	}
	return strings.CutPrefix(importPath, root+"/")
}

// rank orders the packages. A package may import only packages of lower rank. A package without an
// entry has the rank of its nearest parent directory.
var rank = map[string]int{
	"internal": 0,

	"policy/hierarchy": 1,

	"internal/lb/shell":        2,
	"internal/lb/weighted":     3,
	"internal/lb/leaf":         3,
	"internal/config/lbconfig": 1,

	"internal/config/serviceconfig": 1,

	"policy/pickfirst": 3,

	"policy/drop":               4,
	"policy/outlierdetection":   4,
	"policy/priority":           4,
	"policy/weightedroundrobin": 4,
	"policy/weightedtarget":     4,

	"discovery": 2,

	"internal/channel/topology": 3,

	"internal/envoy/messages": 4,
	"internal/rehearse":       4,

	"internal/channel/join": 5,

	"discovery/sourcetest": 4, // a test kit, but other modules use it

	"discovery/failover":   6,
	"discovery/kubernetes": 6,
	"discovery/srv":        6,

	"internal/envoy/cds":         7,
	"internal/envoy/clusterfile": 7,

	// The following sources can send lists of clusters.
	"discovery/eds":  8,
	"discovery/file": 8,

	"internal/page": 3,

	"debug": 4,

	"policy": 5,

	".": 9,

	// The following packages are only for tests. Tests of any rank may import them.
	"internal/testing":            2,
	"internal/testing/overload":   4,
	"internal/testing/flat":       6,
	"internal/testing/given":      6,
	"internal/testing/settle":     6,
	"internal/testing/scripttest": 9, // imports package understudy to open channels
	"internal/testing/sim":        10,

	"examples": 10,
}

func rankOf(t *testing.T, name string) int {
	t.Helper()
	for dir := name; ; dir = path.Dir(dir) {
		if r, ok := rank[dir]; ok && (dir != "." || name == ".") {
			return r
		}
		if dir == "." {
			t.Errorf("%s has no rank: add it to rank", name)
			return 0
		}
	}
}

func topDirectory(dir string) string { return strings.Split(dir, "/")[0] }

func TestImportsFollowRanks(t *testing.T) {
	for _, p := range list(t, "./...") {
		from, _ := directoryOf(p.ImportPath)
		for _, dep := range p.Imports {
			to, internal := directoryOf(dep)
			if !internal || topDirectory(from) == topDirectory(to) && topDirectory(from) != "internal" {
				continue
			}
			if strings.HasPrefix(to, "internal/") && strings.HasPrefix(from, "internal/") && rankOf(t, from) >= rankOf(t, to) {
				continue
			}
			if rankOf(t, from) <= rankOf(t, to) {
				t.Errorf("%s imports %s, against the architecture's arrows", from, to)
			}
		}
	}
}

// Package topology must not depend on policies. Package discovery must not depend on the packages
// that use sources, because sources import it.
func TestDiscoveryDoesNotImportItsUsers(t *testing.T) {
	policies := []string{"internal/lb/shell", "policy/drop", "policy/outlierdetection", "policy/pickfirst", "policy/priority", "policy/weightedroundrobin", "policy/weightedtarget"}
	for packages, forbidden := range map[string][]string{
		"./internal/channel/topology/...": policies,
		"./discovery":                     append(policies, "internal/channel/join", "internal/channel/topology", "internal/lb/live"),
	} {
		for _, p := range list(t, packages) {
			for _, dep := range p.Deps {
				if to, ours := directoryOf(dep); ours && slices.Contains(forbidden, to) {
					t.Errorf("%s depends on %s", p.ImportPath, to)
				}
			}
		}
	}
}

// allowedModules lists the modules that the root module may depend on. Every program that imports
// the root module also gets these modules. Code with other dependencies belongs in cmd/understudy
// or interop.
var allowedModules = []string{
	root,
	"cel.dev/expr",
	"github.com/cncf/xds/go",
	"github.com/cespare/xxhash/v2",
	"github.com/envoyproxy/go-control-plane/envoy",
	"github.com/envoyproxy/protoc-gen-validate",
	"github.com/planetscale/vtprotobuf",
	"go.yaml.in/yaml/v4",
	"golang.org/x/net",
	"golang.org/x/sys",
	"golang.org/x/text",
	"google.golang.org/genproto/googleapis/api",
	"google.golang.org/genproto/googleapis/rpc",
	"google.golang.org/grpc",
	"google.golang.org/protobuf",
}

// Envoy's protobuf messages make up a third of a binary. Therefore, only sources that read them may
// link them.
func TestOnlyEnvoySourcesLinkEnvoy(t *testing.T) {
	patterns := []string{"./internal/channel/join", "./internal/channel/topology", "./discovery", "./discovery/failover", "./discovery/srv", "./debug"}
	for _, p := range list(t, append([]string{"-deps"}, patterns...)...) {
		if p.Module != nil && (strings.Contains(p.Module.Path, "envoyproxy") || strings.Contains(p.Module.Path, "cncf/xds")) {
			t.Errorf("%s is linked, want it with eds and file only", p.ImportPath)
		}
	}
}

// A56: "It does not interact with the XdsClient and contains no xDS-specific code."
func TestPriorityDoesNotImportXDS(t *testing.T) {
	for _, p := range list(t, "-deps", "./policy/priority") {
		if strings.Contains(p.ImportPath, "xds") || strings.Contains(p.ImportPath, "envoy") {
			t.Errorf("priority needs %s", p.ImportPath)
		}
	}
}

func TestRootModuleDependencies(t *testing.T) {
	for _, p := range list(t, "-deps", ".", "./discovery/...") {
		if p.Module != nil && !slices.Contains(allowedModules, p.Module.Path) {
			t.Errorf("the root module needs %s, of module %s", p.ImportPath, p.Module.Path)
		}
		if strings.HasPrefix(p.ImportPath, "google.golang.org/grpc/xds") {
			t.Errorf("the root module needs %s", p.ImportPath)
		}
	}
}
