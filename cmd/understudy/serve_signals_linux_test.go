package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestSIGHUPReloadsFiles(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.yaml")
	writeFile(t, path, oneEndpoint)
	info, err := os.Stat(path)
	must(t, err)
	old := info.ModTime().Add(-testTimeout)
	must(t, os.Chtimes(path, old, old))
	s := startServe(t, nil, path)
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	must(t, err)
	_, err = file.WriteAt([]byte(strings.Replace(oneEndpoint, "portValue: 1", "portValue: 0", 1)), 0)
	must(t, err)
	must(t, file.Close())
	must(t, os.Chtimes(path, old, old))
	must(t, s.Process.Signal(syscall.SIGHUP))
	if problem, _ := s.awaitLog(t, "rejected, its last good content is still served")["error"].(string); !strings.Contains(problem, "port_value is 0") {
		t.Errorf("the log says %q", problem)
	}
	must(t, s.Process.Signal(syscall.SIGTERM))
	s.awaitExit(t)
	if s.exitErr != nil {
		t.Errorf("after a SIGHUP, SIGTERM ends the process with %v", s.exitErr)
	}
}
