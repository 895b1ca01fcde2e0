//go:build torture

package torture

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const configVariable = "UNDERSTUDY_TORTURE_CONFIG"

// process is a program in this binary that can be killed and restarted. It is not safe for
// concurrent use.
type process struct {
	name, role string
	config     any
	log        *eventLog
	// handleLine is called with each line of the output, except for acknowledgements.
	handleLine func(name, line string)
	dir        string

	cmd     *exec.Cmd
	stdin   io.WriteCloser
	acks    chan string
	exited  chan struct{}
	mu      sync.Mutex
	killed  bool          // whether the test has killed the process
	resumed time.Duration // when it last continued after SIGSTOP, or forever while it is stopped
	peakMB  int           // over all restarts
}

const ack = "ok"

// processTimeout limits the time until a process has started, or has executed a command.
const processTimeout = 5 * time.Minute

func (p *process) start() error {
	config, err := json.Marshal(p.config)
	if err != nil {
		return err
	}
	p.cmd = exec.Command("/proc/self/exe")
	p.cmd.Env = append(os.Environ(), roleVariable+"="+p.role, configVariable+"="+string(config),
		"GORACE=log_path="+p.dir+"/race", "GRPC_GO_LOG_SEVERITY_LEVEL=warning")
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return err
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	p.mu.Lock()
	p.killed, p.resumed = false, 0
	p.mu.Unlock()
	p.acks, p.exited = make(chan string, 1), make(chan struct{})
	go p.read(p.cmd, stdout, stderr, p.acks, p.exited)
	return p.await("start")
}

// read reads the output of a process until it exits, and reports an unexpected exit.
func (p *process) read(cmd *exec.Cmd, stdout, stderr io.Reader, acks chan<- string, exited chan<- struct{}) {
	var readers sync.WaitGroup
	readers.Go(func() {
		for lines := bufio.NewReader(stdout); ; {
			line, err := lines.ReadString('\n')
			if err != nil {
				return
			}
			if line = strings.TrimSuffix(line, "\n"); strings.HasPrefix(line, ack) {
				acks <- line
			} else {
				p.handleLine(p.name, line)
			}
		}
	})
	readers.Go(func() {
		for lines := bufio.NewReader(stderr); ; {
			line, err := lines.ReadString('\n')
			if line != "" && !strings.Contains(line, "[core]") && !strings.Contains(line, "[transport]") {
				p.log.event("%s: %s", p.name, strings.TrimSuffix(line, "\n"))
			}
			if err != nil {
				return
			}
		}
	})
	readers.Wait()
	err := cmd.Wait()
	p.mu.Lock()
	killed := p.killed
	p.mu.Unlock()
	if !killed {
		p.log.ruleBroken(ruleProcess, "%s has ended: %v", p.name, err)
	}
	close(exited)
}

func (p *process) await(what string) error {
	timer := time.NewTimer(processTimeout)
	defer timer.Stop()
	select {
	case <-p.acks:
		return nil
	case <-p.exited:
		return fmt.Errorf("%s: %s: the process has ended", p.name, what)
	case <-timer.C:
		return fmt.Errorf("%s: %s: no acknowledgement within %v", p.name, what, processTimeout)
	}
}

func (p *process) send(command string) error {
	if _, err := io.WriteString(p.stdin, command+"\n"); err != nil {
		return fmt.Errorf("%s: %s: %w", p.name, command, err)
	}
	return p.await(command)
}

func (p *process) signal(s syscall.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("%s: %v: %w", p.name, s, err)
	}
	return nil
}

func (p *process) stop(stop bool) error {
	s, resumed := syscall.SIGCONT, now()
	if stop {
		s, resumed = syscall.SIGSTOP, forever
	}
	p.mu.Lock()
	p.resumed = resumed
	p.mu.Unlock()
	return p.signal(s)
}

// wasStopped reports whether SIGSTOP caused the delay in a pulse.
func (p *process) wasStopped(r record) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.resumed == forever || r.End < p.resumed+time.Second
}

func (p *process) kill() error {
	p.measure()
	p.mu.Lock()
	p.killed = true
	p.mu.Unlock()
	err := p.signal(syscall.SIGKILL)
	<-p.exited
	return err
}

func (p *process) measure() {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	var kb int
	if _, err := fmt.Sscan(rest, &kb); err == nil {
		p.peakMB = max(p.peakMB, kb/1000)
	}
}

// limitFiles limits the number of open files. Files that are already open stay open.
func (p *process) limitFiles(n uint64) error {
	var limit unix.Rlimit
	if err := unix.Prlimit(p.cmd.Process.Pid, unix.RLIMIT_NOFILE, nil, &limit); err != nil {
		return err
	}
	limit.Cur = min(n, limit.Max)
	return unix.Prlimit(p.cmd.Process.Pid, unix.RLIMIT_NOFILE, &limit, nil)
}

// readCommands prints that the process is ready, and calls handle for each command until stdin
// ends. When the process was delayed, it prints a pulse.
func readCommands(handle func(command string) error) error {
	fmt.Println(ack)
	go measureDelay(func(r record) {
		if r.Delay > 20*time.Millisecond {
			emit(r)
		}
	}, nil)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if err := handle(lines.Text()); err != nil {
			return err
		}
		fmt.Println(ack)
	}
	return nil
}

func readConfig(config any) error { return json.Unmarshal([]byte(os.Getenv(configVariable)), config) }
