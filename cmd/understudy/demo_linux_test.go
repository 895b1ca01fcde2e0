package main

import (
	"bufio"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// runAsCommandEnv is the environment variable that makes this test binary act as the understudy
// command.
const runAsCommandEnv = "UNDERSTUDY_TEST_AS_BINARY"

// A demo with --hold ends with exit code 0 when it is interrupted, even if backends hang, and leaves
// no file behind.
func TestHeldDemoEndsWhenInterrupted(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			demo := startHeldDemo(t, dir)
			for _, form := range []url.Values{{"hang": {"us-east/a"}}, {"kill": {"p1"}}, {"restore": {"eu-west/a"}}} {
				response, err := http.PostForm(demo.page+"do", form)
				must(t, err)
				page, err := io.ReadAll(response.Body)
				response.Body.Close()
				if err != nil || response.StatusCode != http.StatusOK {
					t.Fatalf("%v: %s %v %s", form, response.Status, err, page)
				}
			}
			must(t, demo.Process.Signal(signal))
			if err := demo.Wait(); err != nil {
				t.Errorf("the demo ended with %v", err)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("the demo left %v in the temporary directory, %v", left, err)
			}
		})
	}
}

func TestInterruptedDemoFails(t *testing.T) {
	t.Parallel()
	demo := exec.Command(os.Args[0], "demo")
	dir := t.TempDir()
	demo.Env = append(os.Environ(), runAsCommandEnv+"=1", "TMPDIR="+dir)
	out, err := demo.StdoutPipe()
	must(t, err)
	must(t, demo.Start())
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.HasPrefix(line, "phase ") {
		t.Fatalf("the demo began with %q, %v", line, err)
	}
	must(t, demo.Process.Signal(syscall.SIGINT))
	demo.Wait()
	if code := demo.ProcessState.ExitCode(); code != 1 {
		t.Errorf("the demo ended with %d, want 1", code)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("the demo left %v in the temporary directory, %v", left, err)
	}
}
