package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// driverScript is run by a bash process, which runs the commands of a page. It reads the number of
// a block, runs the block, and writes an empty line to file descriptor 4 when it's done. Commands
// in the background keep writing to the output file of their block.
const driverScript = `set -e
exec 3<&0 </dev/null
readonly _blocks="$1"
shift
while read -r -u 3 _block; do
  exec >"$_blocks/$_block.out" 2>&1
  source "$_blocks/$_block.sh" 3<&- 4>&-
  echo >&4
done
`

type session struct {
	blocks  string
	count   int
	command *exec.Cmd
	numbers *os.File
	done    chan bool
	exited  chan struct{}
	err     error // only valid after exited is closed
}

func start(dir, blocks string, env []string) (*session, error) {
	if err := os.MkdirAll(blocks, 0o755); err != nil {
		return nil, err
	}
	numbersRead, numbers, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = numbersRead.Close() }() // bash has its own copy of the file descriptor
	lines, linesWrite, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, numbers.Close())
	}
	defer func() { _ = linesWrite.Close() }()
	s := &session{blocks: blocks, numbers: numbers, done: make(chan bool, 1), exited: make(chan struct{})}
	s.command = exec.Command("bash", "-c", driverScript, "bash", blocks)
	s.command.Dir, s.command.Env, s.command.Stdin = dir, env, numbersRead
	s.command.ExtraFiles = []*os.File{nil, linesWrite} // this becomes file descriptor 4
	s.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := s.command.Start(); err != nil {
		return nil, errors.Join(err, numbers.Close(), lines.Close())
	}
	go func() {
		defer func() { _ = lines.Close() }()
		for scanner := bufio.NewScanner(lines); scanner.Scan(); {
			s.done <- true
		}
	}()
	go func() {
		s.err = s.command.Wait()
		close(s.exited)
	}()
	return s, nil
}

func (s *session) run(ctx context.Context, script string) (output string, err error) {
	s.count++
	name := filepath.Join(s.blocks, strconv.Itoa(s.count))
	if err := os.WriteFile(name+".sh", []byte(script), 0o644); err != nil {
		return "", err
	}
	if _, err := fmt.Fprintln(s.numbers, s.count); err != nil {
		return "", err
	}
	select {
	case <-s.done:
	case <-s.exited:
		err = s.err
		if err == nil {
			err = errors.New("the commands ended the shell")
		}
	case <-ctx.Done():
		err = ctx.Err()
	}
	data, readErr := os.ReadFile(name + ".out")
	return string(data), errors.Join(err, readErr)
}

func (s *session) close() {
	group := -s.command.Process.Pid
	_ = syscall.Kill(group, syscall.SIGKILL)
	<-s.exited
	_ = s.numbers.Close()
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for range 40 { // a dead process stays visible until its parent has waited for it
		if errors.Is(syscall.Kill(group, 0), syscall.ESRCH) {
			return
		}
		<-poll.C
	}
}
