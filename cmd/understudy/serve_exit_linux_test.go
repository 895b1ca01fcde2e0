package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// If a port is in use, serve exits with code 1. If an address is invalid or a file does not exist,
// it exits with code 2.
func TestServeExitCodes(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	path := filepath.Join(t.TempDir(), "a.yaml")
	writeFile(t, path, oneEndpoint)
	for _, test := range []struct {
		code int
		args []string
	}{
		{1, []string{path, "--listen", listener.Addr().String()}},
		{1, []string{path, "--listen", "127.0.0.1:0", "--metrics", listener.Addr().String()}},
		{2, []string{path, "--listen", "127.0.0.1:70000"}},
		{2, []string{path, "--listen", "127.0.0.1:0", "--metrics", "x:y:z"}},
		{2, []string{path + ".none", "--listen", "127.0.0.1:0"}},
	} {
		serve := exec.Command(os.Args[0], append([]string{"serve"}, test.args...)...)
		serve.Env = append(os.Environ(), runAsCommandEnv+"=1")
		output, err := serve.CombinedOutput()
		if code := serve.ProcessState.ExitCode(); code != test.code {
			t.Errorf("serve %v exits with %d, want %d: %v, %s", test.args[1:], code, test.code, err, output)
		}
	}
}
