package main

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"testing"
)

type heldDemo struct {
	*exec.Cmd
	page string
}

func startHeldDemo(t *testing.T, dir string, args ...string) *heldDemo {
	t.Helper()
	d := &heldDemo{Cmd: exec.Command(os.Args[0], append([]string{"demo", "--hold"}, args...)...)}
	d.Env = append(os.Environ(), runAsCommandEnv+"=1", "TMPDIR="+dir)
	stdout, err := d.StdoutPipe()
	must(t, err)
	must(t, d.Start())
	line, err := bufio.NewReader(stdout).ReadString('\n')
	page, found := strings.CutPrefix(strings.TrimSpace(line), "page: ")
	if !found {
		t.Fatalf("the demo began with %q, %v", line, err)
	}
	d.page = page
	return d
}
