package main

import (
	"bytes"
	"encoding/json"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

// A build has the versions and the commit that the Go toolchain recorded in the binary. The output
// says if they were not recorded.
func TestBuildInfo(t *testing.T) {
	const hash = "1098723aa0f1d6b3c4a1f7a5ef6b0a4e2f0c9d11"
	grpc := &debug.Module{Path: "google.golang.org/grpc", Version: "v1.85.0"}
	platform := runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH
	vcs := func(modified string) []debug.BuildSetting {
		return []debug.BuildSetting{{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: hash}, {Key: "vcs.modified", Value: modified}}
	}
	for name, c := range map[string]struct {
		info                 *debug.BuildInfo
		line, commit, absent string
	}{
		"installed": {
			&debug.BuildInfo{Main: debug.Module{Version: "v0.1.0"}, Deps: []*debug.Module{{Path: "google.golang.org/protobuf", Version: "v1.36.12"}, grpc}},
			"v0.1.0, " + platform + ", grpc v1.85.0", "commit     not recorded", `"commit"`,
		},
		"repository": {
			&debug.BuildInfo{Main: debug.Module{Version: "v0.1.0"}, Deps: []*debug.Module{grpc}, Settings: vcs("false")},
			"v0.1.0, commit " + hash + ", " + platform + ", grpc v1.85.0", "commit     " + hash + "\n", `"modified":true`,
		},
		"changed": {
			&debug.BuildInfo{Main: debug.Module{Version: "(devel)"}, Deps: []*debug.Module{grpc}, Settings: vcs("true")},
			"(devel), commit " + hash + " with changes, " + platform + ", grpc v1.85.0", "commit     " + hash + " with changes\n", `"modified":false`,
		},
		"another grpc": {
			&debug.BuildInfo{Main: debug.Module{Version: "v0.1.0"}, Deps: []*debug.Module{{Path: grpc.Path, Version: "v1.82.0", Replace: &debug.Module{Path: "example.com/grpc", Version: "v9.9.9"}}}},
			"v0.1.0, " + platform + ", grpc v9.9.9", "grpc       v9.9.9\n", "v1.82.0",
		},
		"without information": {
			nil, "(unknown), " + platform + ", grpc (unknown)", "understudy (unknown)\n", `"commit"`,
		},
	} {
		b := buildOf(c.info)
		if got := b.String(); got != c.line {
			t.Errorf("%s: --version prints %q, want %q", name, got, c.line)
		}
		var lines bytes.Buffer
		if err := b.printTable(&lines); err != nil || !strings.Contains(lines.String(), c.commit) {
			t.Errorf("%s: version prints %q, want %q in it", name, lines.String(), c.commit)
		}
		object, err := json.Marshal(b)
		if err != nil || strings.Contains(string(object), c.absent) {
			t.Errorf("%s: %s, %v: want no %s", name, object, err, c.absent)
		}
	}
}
