// Package testleak detects goroutines that are still running after the tests of a package. For
// tests only.
package testleak

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// patience is how long goroutines may take to end. On a busy machine, closing a file notifier takes
// seconds.
const patience = 30 * time.Second

// Main runs the tests of a package. It fails if one of their goroutines does not end.
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
