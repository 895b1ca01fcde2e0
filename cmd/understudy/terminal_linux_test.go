package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

type terminal struct {
	t       *testing.T
	pty     *os.File
	mu      sync.Mutex
	out     bytes.Buffer
	updated chan struct{}
}

// newTerminal opens a pseudo-terminal of the given size. The program under test uses tty.
func newTerminal(t *testing.T, columns, rows uint16) (term *terminal, tty *os.File) {
	t.Helper()
	pty, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	must(t, err)
	t.Cleanup(func() { pty.Close() })
	number, err := unix.IoctlGetInt(int(pty.Fd()), unix.TIOCGPTN)
	must(t, err)
	must(t, unix.IoctlSetPointerInt(int(pty.Fd()), unix.TIOCSPTLCK, 0))
	if tty, err = os.OpenFile(fmt.Sprint("/dev/pts/", number), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tty.Close() })
	term = &terminal{t: t, pty: pty, updated: make(chan struct{}, 1)}
	term.resize(columns, rows)
	go func() {
		chunk := make([]byte, 4096)
		for {
			n, err := pty.Read(chunk)
			if err != nil {
				return
			}
			term.mu.Lock()
			term.out.Write(chunk[:n])
			term.mu.Unlock()
			select {
			case term.updated <- struct{}{}:
			default:
			}
		}
	}()
	return term, tty
}

func (term *terminal) resize(columns, rows uint16) {
	term.t.Helper()
	if err := unix.IoctlSetWinsize(int(term.pty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: rows}); err != nil {
		term.t.Fatal(err)
	}
}

func (term *terminal) await(text string) string {
	term.t.Helper()
	timeout := time.After(time.Minute)
	for {
		term.mu.Lock()
		out := term.out.String()
		if strings.Contains(out, text) {
			term.out.Reset()
			term.mu.Unlock()
			return out
		}
		term.mu.Unlock()
		select {
		case <-term.updated:
		case <-timeout:
			term.t.Fatalf("the terminal does not show %q, but %q", text, out)
		}
	}
}

const (
	enterScreen = "\x1b[?1049h\x1b[?25l"
	leaveScreen = "\x1b[?7h\x1b[?25h\x1b[?1049l"
)

// The watch restores the terminal when a signal or --for ends it. The exit code is 0 if calls
// could be sent.
func TestWatchRestoresTerminal(t *testing.T) {
	t.Parallel()
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"channels": [{"target": "a\u001b[31m", "state": "READY"}]}`)
	}))
	defer page.Close()
	for name, test := range map[string]struct {
		end   func(*terminal, *os.Process)
		args  []string
		shown string
		code  int
	}{
		"Ctrl-C":  {func(term *terminal, _ *os.Process) { term.pty.WriteString("\x03") }, []string{page.URL}, "Calls can be sent.", 0},
		"SIGINT":  {func(_ *terminal, p *os.Process) { p.Signal(syscall.SIGINT) }, []string{page.URL}, "Calls can be sent.", 0},
		"SIGTERM": {func(_ *terminal, p *os.Process) { p.Signal(syscall.SIGTERM) }, []string{"127.0.0.1:1"}, "No priority can take calls.", 3},
		"for":     {func(*terminal, *os.Process) {}, []string{page.URL, "--for", "10s"}, "Calls can be sent.", 0},
	} {
		t.Run(name, func(t *testing.T) {
			term, tty := newTerminal(t, 200, 20)
			before, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
			must(t, err)
			command := exec.Command(os.Args[0], append([]string{"watch"}, test.args...)...)
			command.Env = append(os.Environ(), runAsCommandEnv+"=1", "TERM=xterm")
			command.Stdin, command.Stdout, command.Stderr = tty, tty, tty
			command.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			must(t, command.Start())
			shown := term.await(test.shown)
			if !strings.HasPrefix(shown, enterScreen) {
				t.Errorf("the screen is %q", shown)
			}
			if name != "for" { // with --for, the watch may already have ended
				term.resize(10, 10)
				term.await("…")
			}
			test.end(term, command.Process)
			last := term.await(leaveScreen)
			command.Wait()
			if code := command.ProcessState.ExitCode(); code != test.code {
				t.Errorf("the exit code is %d, want %d: %q", code, test.code, last)
			}
			after, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
			if err != nil || *after != *before {
				t.Errorf("the terminal's settings are %+v, %v, want %+v", after, err, before)
			}
			if strings.Contains(shown, "\x1b[31m") || test.code == 0 && !strings.Contains(shown, `a\x1b[31m`) {
				t.Errorf("a name steers the terminal, or is not shown: %q", shown)
			}
		})
	}
}

func TestDumbTerminalGetsLines(t *testing.T) {
	t.Parallel()
	term, tty := newTerminal(t, 70, 20)
	command := exec.Command(os.Args[0], "watch", "127.0.0.1:1")
	command.Env = append(os.Environ(), runAsCommandEnv+"=1", "TERM=dumb")
	command.Stdin, command.Stdout = tty, tty
	must(t, command.Start())
	if shown := term.await("No priority can take calls"); strings.Contains(shown, "\x1b") {
		t.Errorf("a dumb terminal gets %q", shown)
	}
	command.Process.Signal(os.Interrupt)
	command.Wait()
}
