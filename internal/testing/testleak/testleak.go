// Package testleak detects goroutines that are still running after the tests of a package.
package testleak

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// timeout is how long Main waits for goroutines to end. On a busy machine, closing a file notifier
// takes seconds.
const timeout = 30 * time.Second

// Main runs the tests of a package and exits. If any goroutine of the tests hasn't ended within
// timeout, it exits with an error. Parallel tests mostly wait, so we run up to twelve at a time.
func Main(m *testing.M, options ...goleak.Option) {
	_ = flag.Set("test.parallel", "12") // this flag is defined by package testing
	code := m.Run()
	for deadline := time.Now().Add(timeout); code == 0; {
		err := goleak.Find(options...) // retries for up to a second
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			fmt.Fprintln(os.Stderr, "leaked goroutines:", err)
			code = 1
		}
	}
	os.Exit(code)
}
