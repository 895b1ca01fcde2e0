// Package testleak finds goroutines that the tests of a package leave behind. For tests only.
package testleak

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// patience is how long goroutines may take to end: on a busy machine, it takes seconds to close a
// file notifier.
const patience = 30 * time.Second

// Main runs the tests of a package and fails if a goroutine of theirs does not end.
func Main(m *testing.M) {
	code := m.Run()
	for end := time.Now().Add(patience); code == 0; {
		err := goleak.Find() // waits for up to a second
		if err == nil {
			break
		}
		if time.Now().After(end) {
			fmt.Fprintln(os.Stderr, "leaked goroutines:", err)
			code = 1
		}
	}
	os.Exit(code)
}
