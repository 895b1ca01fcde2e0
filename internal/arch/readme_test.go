package arch

import (
	"os"
	"strings"
	"testing"
)

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile("../../" + file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// The client in the README is the one that compiles.
func TestReadmeShowsTheExampleClient(t *testing.T) {
	source := read(t, "examples/client/main.go")
	_, source, _ = strings.Cut(source, "package main\n")
	if !strings.Contains(read(t, "README.md"), "```go\npackage main\n"+source+"```\n") {
		t.Error("the client in README.md is not examples/client/main.go: copy it there, from its package line on")
	}
}

// The test command that the README names is the one that the gate runs.
func TestGateRunsTheReadmesCommands(t *testing.T) {
	readme, gate := read(t, "README.md"), read(t, ".ci/run")
	for _, command := range []string{"go run ./cmd/understudy demo", "go test work"} {
		if !strings.Contains(readme, "\n"+command) || !strings.Contains(gate, "\n"+command+"\n") {
			t.Errorf("%q is not a command of both README.md and .ci/run", command)
		}
	}
}
