package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// runAsCommandEnv is the environment variable that makes this test binary act as the understudy
// command.
const runAsCommandEnv = "UNDERSTUDY_TEST_AS_BINARY"

// A demo with --hold leaves no backend process behind, no matter which signal ends the demo, even
// if backends hang or were restarted. After an interrupt, the exit code is 0.
func TestHeldDemoStopsBackends(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			demo := startHeldDemo(t, dir)
			for _, form := range []url.Values{
				{"do": {"hang"}, "to": {"locality us-east/a"}},
				{"do": {"kill"}, "to": {"priority 1"}},
				{"do": {"restore"}, "to": {"locality eu-west/a"}},
			} {
				response, err := http.PostForm(demo.page+"do", form)
				if err != nil {
					t.Fatal(err)
				}
				page, err := io.ReadAll(response.Body)
				response.Body.Close()
				if err != nil || response.StatusCode != http.StatusOK {
					t.Fatalf("%v: %s %v %s", form, response.Status, err, page)
				}
			}
			backends := childrenOf(t, demo.Process.Pid)
			if len(backends) != 5 {
				t.Fatalf("the demo has the children %v, want 5", backends)
			}
			if err := demo.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			if err := demo.Wait(); err != nil && signal != syscall.SIGKILL {
				t.Errorf("the demo ended with %v", err)
			}
			for _, pid := range backends {
				awaitEnd(t, pid)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 && signal != syscall.SIGKILL {
				t.Errorf("the demo left %v in the temporary directory, %v", left, err)
			}
		})
	}
}

func TestDemoStopsBackends(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			demo := exec.Command(os.Args[0], "demo")
			dir := t.TempDir() // a demo that was killed cannot remove its directory
			demo.Env = append(os.Environ(), runAsCommandEnv+"=1", "TMPDIR="+dir)
			progress, err := demo.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := demo.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewReader(progress)
			if line, err := lines.ReadString('\n'); err != nil || !strings.HasPrefix(line, "5 backends are up") {
				t.Fatalf("the demo began with %q, %v", line, err)
			}
			backends := childrenOf(t, demo.Process.Pid)
			if len(backends) != 5 {
				t.Fatalf("the demo has the children %v, want 5", backends)
			}
			if err := demo.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			err = demo.Wait()
			if err == nil {
				t.Error("the demo ended well, want a failure")
			}
			for _, pid := range backends {
				awaitEnd(t, pid)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 && signal != syscall.SIGKILL {
				t.Errorf("the demo left %v in the temporary directory, %v", left, err)
			}
		})
	}
}

func childrenOf(t *testing.T, pid int) []int {
	t.Helper()
	// Any thread of the process may have started a backend, and /proc lists children by thread.
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		t.Fatal(err)
	}
	var children []int
	for _, task := range tasks {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, task.Name()))
		if err != nil {
			t.Fatal(err)
		}
		for _, field := range strings.Fields(string(data)) {
			child, err := strconv.Atoi(field)
			if err != nil {
				t.Fatal(err)
			}
			children = append(children, child)
		}
	}
	return children
}

// awaitEnd waits until the process has ended or is a zombie.
func awaitEnd(t *testing.T, pid int) {
	t.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	timeout := time.After(time.Minute)
	for {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		if strings.HasPrefix(rest, "Z") {
			return
		}
		select {
		case <-ticker.C:
		case <-timeout:
			t.Fatalf("backend %d is still there: %s", pid, stat)
		}
	}
}
