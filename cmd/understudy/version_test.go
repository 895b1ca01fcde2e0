package main

import (
	"encoding/json"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"google.golang.org/grpc"

	"github.com/understudy-lb/understudy/cmd/understudy/internal/table"
)

// A build has the versions and the commit that the Go toolchain recorded in the binary. The output
// says if they were not recorded.
func TestBuildInfo(t *testing.T) {
	const hash = "1098723aa0f1d6b3c4a1f7a5ef6b0a4e2f0c9d11"
	rest := runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH + ", grpc v" + grpc.Version
	vcs := func(modified string) []debug.BuildSetting {
		return []debug.BuildSetting{{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: hash}, {Key: "vcs.modified", Value: modified}}
	}
	for name, c := range map[string]struct {
		info                 *debug.BuildInfo
		line, commit, absent string
	}{
		"installed": {
			&debug.BuildInfo{Main: debug.Module{Version: "v0.1.0"}},
			"v0.1.0, commit not recorded in this build, " + rest, "commit      not recorded", `"commit"`,
		},
		"repository": {
			&debug.BuildInfo{Main: debug.Module{Version: "v0.1.0"}, Settings: vcs("false")},
			"v0.1.0, commit " + hash + ", " + rest, "commit      " + hash + "\n", `"modified":true`,
		},
		"changed": {
			&debug.BuildInfo{Main: debug.Module{Version: "(devel)"}, Settings: vcs("true")},
			"(devel), commit " + hash + " with changes, " + rest, "commit      " + hash + " with changes\n", `"modified":false`,
		},
		"without information": {
			new(debug.BuildInfo), "(unknown), commit not recorded in this build, " + rest, "understudy  (unknown)\n", `"commit"`,
		},
	} {
		b := buildOf(c.info)
		if got := b.String(); got != c.line {
			t.Errorf("%s: --version prints %q, want %q", name, got, c.line)
		}
		if lines := table.Format(b.rows()); !strings.Contains(lines, c.commit) {
			t.Errorf("%s: version prints %q, want %q in it", name, lines, c.commit)
		}
		object, err := json.Marshal(b)
		if err != nil || strings.Contains(string(object), c.absent) {
			t.Errorf("%s: %s, %v: want no %s", name, object, err, c.absent)
		}
	}
}
