package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// longest is the time limit for a build, and for the tests of a package without a mutant.
const longest = 3 * time.Minute

// A suite is the tests of a package.
type suite struct {
	dir   string // of the package
	flags []string
	limit time.Duration // after which the tests are considered to hang; 0: not yet known
}

// suitesOf returns the tests of packages. Tests that draw their input draw the same for each
// mutant, and do not leave it in a file, which other tests would read.
func suitesOf(patterns []string) ([]*suite, error) {
	var all []*suite
	for _, pattern := range patterns {
		out, err := runIn("..", longest, "go", "list", "-f", "{{.Dir}} {{.TestImports}} {{.XTestImports}}", pattern)
		if err != nil {
			return nil, errors.New(out)
		}
		for line := range strings.Lines(out) {
			s := &suite{flags: []string{"-test.failfast"}}
			s.dir, line, _ = strings.Cut(line, " ")
			if strings.Contains(line, "pgregory.net/rapid") {
				s.flags = append(s.flags, "-rapid.seed=1", "-rapid.nofailfile", "-rapid.shrinktime=1ms")
			}
			all = append(all, s)
		}
	}
	return all, nil
}

// run runs the tests with an overlay. A scratch directory holds the program.
func (s *suite) run(scratch string, overlay []byte) (fate, error) {
	if err := s.setLimit(scratch); err != nil {
		return "", err
	}
	test, err := s.build(scratch, overlay)
	if err != nil {
		return uncompiled, nil //nolint:nilerr // the compiler's errors
	}
	if !exists(test) {
		return survived, nil // the package has no tests
	}
	begin := time.Now()
	switch _, err := runIn(s.dir, s.limit, test, s.flags...); {
	case err == nil:
		return survived, nil
	case time.Since(begin) >= s.limit:
		return hung, nil
	default:
		return killed, nil
	}
}

// setLimit runs the tests without a mutant, the first time.
func (s *suite) setLimit(scratch string) error {
	if s.limit > 0 {
		return nil
	}
	s.limit = longest
	test, err := s.build(scratch, []byte("{}"))
	if err != nil || !exists(test) {
		return err
	}
	begin := time.Now()
	if out, err := runIn(s.dir, longest, test, s.flags...); err != nil {
		return fmt.Errorf("the tests in %s fail without a mutant: %s", s.dir, out)
	}
	s.limit = min(longest, max(30*time.Second, 10*time.Since(begin)))
	return nil
}

// build compiles the tests and returns the program. There is none if the package has no tests.
func (s *suite) build(scratch string, overlay []byte) (string, error) {
	file, test := filepath.Join(scratch, "overlay.json"), filepath.Join(scratch, filepath.Base(s.dir)+".test")
	err := errors.Join(os.RemoveAll(test), os.WriteFile(file, overlay, 0o600))
	if err != nil {
		return "", err
	}
	if out, err := runIn(s.dir, 2*longest, "go", "test", "-c", "-overlay", file, "-o", test, "."); err != nil {
		return "", errors.New(out)
	}
	return test, nil
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// runIn runs a command in a directory and returns its output.
func runIn(dir string, limit time.Duration, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	command := exec.CommandContext(ctx, name, args...)
	command.Dir, command.WaitDelay = dir, time.Second
	out, err := command.CombinedOutput()
	return string(out), err
}
