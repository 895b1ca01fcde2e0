package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// Without a mutant, the tests of a package may take so long.
const maxTimeout = 10 * time.Minute

type suite struct {
	dir            string // the directory of the package
	flags          []string
	limit          time.Duration // the timeout of the tests; 0 before the first run
	failsUnmutated bool          // the tests fail even without a mutant, so they cannot detect mutants
}

// Tests with random input must use the same input for each mutant, and must not save failing input
// to a file: later runs would read it.
func suitesOf(patterns []string) ([]*suite, error) {
	var all []*suite
	for _, pattern := range patterns {
		out, err := runIn("../..", nil, maxTimeout, "go", "list", "-f", "{{.Dir}} {{.TestImports}} {{.XTestImports}}", pattern)
		if err != nil {
			return nil, fmt.Errorf("go list %s: %w\n%s", pattern, err, out)
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

// On the first call, we also run the tests without a mutant. If they fail then, they cannot detect
// mutants, and all mutants count as survived.
func (s *suite) run(p *program, number int) (outcome, error) {
	test, err := p.test(s)
	if err != nil || test == "" {
		return survived, err
	}
	if s.limit == 0 && number != 0 {
		begin := time.Now()
		if out, err := runIn(s.dir, nil, maxTimeout, test, s.flags...); err != nil {
			fmt.Printf("the tests in %s fail without a mutant: %s\n", s.dir, out)
			s.failsUnmutated = true
		}
		s.limit = min(maxTimeout, max(30*time.Second, 10*time.Since(begin)))
	}
	limit := s.limit
	if limit == 0 {
		limit = maxTimeout
	}
	if s.failsUnmutated {
		return survived, nil
	}
	begin := time.Now()
	switch _, err := runIn(s.dir, []string{fmt.Sprintf("MUTANT=%d", number)}, limit, test, s.flags...); {
	case err == nil:
		return survived, nil
	case time.Since(begin) >= limit:
		return hung, nil
	default:
		return killed, nil
	}
}

func runIn(dir string, env []string, limit time.Duration, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	command := exec.CommandContext(ctx, name, args...)
	command.Dir, command.WaitDelay = dir, time.Second
	command.Env = append(os.Environ(), env...)
	out, err := command.CombinedOutput()
	return string(out), err
}
