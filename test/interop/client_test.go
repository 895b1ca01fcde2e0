package interop

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// lineClient controls a client in another process: stockclient/main.go or grpcjs/client.js. For
// each line on its stdin, the process makes this number of calls, and prints the result as a
// line.
type lineClient struct {
	in  io.Writer
	out *bufio.Reader
}

func newLineClient(t *testing.T, address string, cmd *exec.Cmd) *lineClient {
	t.Helper()
	cmd.Env = append(os.Environ(), "GRPC_XDS_BOOTSTRAP_CONFIG="+string(bootstrap(address)), "GRPC_XDS_BOOTSTRAP=")
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
	return &lineClient{in, bufio.NewReader(out)}
}

func newStockClient(t *testing.T, address, target string) *lineClient {
	t.Helper()
	return newLineClient(t, address, exec.Command(filepath.Join(filepath.Dir(binary), "stockclient"), target))
}

func (c *lineClient) callN(t *testing.T, n int) map[string]int {
	t.Helper()
	counts, err := c.tryCalls(n)
	if err != nil {
		t.Fatal(err)
	}
	return counts
}

func (c *lineClient) tryCalls(n int) (map[string]int, error) {
	if _, err := fmt.Fprintln(c.in, n); err != nil {
		return nil, err
	}
	line, err := c.out.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	var answer struct {
		Counts map[string]int
		Error  string
	}
	if err := json.Unmarshal(line, &answer); err != nil {
		return nil, fmt.Errorf("%s: %w", line, err)
	}
	if answer.Error != "" {
		return nil, fmt.Errorf("after %v: %s", answer.Counts, answer.Error)
	}
	return answer.Counts, nil
}

func (c *lineClient) callUntil(t *testing.T, want string) {
	t.Helper()
	for deadline := time.Now().Add(timeout); c.callN(t, 1)[want] == 0; {
		if time.Now().After(deadline) {
			t.Fatalf("no call reached %s within %v", want, timeout)
		}
	}
}

// traffic makes calls until stop is called. The test fails if a call fails. stop returns the number
// of calls.
func (c *lineClient) traffic(t *testing.T) (stop func() int) {
	t.Helper()
	done, total := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		for tick := time.Tick(10 * pace); ; {
			select {
			case <-done:
				total <- n
				return
			case <-tick:
			}
			if _, err := c.tryCalls(20); err != nil {
				t.Errorf("after %d calls: %v", n, err)
				<-done
				total <- n
				return
			}
			n += 20
		}
	}()
	stop = sync.OnceValue(func() int {
		close(done)
		return <-total
	})
	t.Cleanup(func() { stop() })
	return stop
}
