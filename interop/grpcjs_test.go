//go:build grpcjs

package interop

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// nodeClient is the client in grpcjs/client.js.
type nodeClient struct {
	in  io.Writer
	out *bufio.Reader
}

func newNodeClient(t *testing.T, address, target string) *nodeClient {
	t.Helper()
	cmd := exec.Command("node", "client.js", target)
	cmd.Dir = "grpcjs"
	cmd.Env = append(os.Environ(), "GRPC_XDS_BOOTSTRAP_CONFIG="+string(bootstrap(address)))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return &nodeClient{in, bufio.NewReader(out)}
}

// answered makes n calls, none of which may fail, and counts them by backend.
func (c *nodeClient) answered(t *testing.T, n int) map[string]int {
	t.Helper()
	if _, err := fmt.Fprintln(c.in, n); err != nil {
		t.Fatal(err)
	}
	line, err := c.out.ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Counts map[string]int
		Error  string
	}
	if err := json.Unmarshal(line, &answer); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	if answer.Error != "" {
		t.Fatalf("after %v: %s", answer.Counts, answer.Error)
	}
	return answer.Counts
}

// gRPC for Node.js follows a file that is served.
func TestNodeClientAgainstServe(t *testing.T) {
	a, b := backend(t), backend(t)
	path := filepath.Join(t.TempDir(), "payments.yaml")
	write(t, path, place{a, 0})
	p := serve(t, "127.0.0.1:0", path)
	client := newNodeClient(t, p.address, "xds:///payments")
	if got := client.answered(t, 10); got[a] != 10 {
		t.Errorf("10 calls were answered by %v, want %s", got, a)
	}
	write(t, path, place{b, 0})
	for end := time.Now().Add(patience); client.answered(t, 1)[b] == 0; {
		if time.Now().After(end) {
			t.Fatalf("no call was answered by %s within %v", b, patience)
		}
	}
}
