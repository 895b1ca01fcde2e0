// Package testleak finds goroutines that the tests of a package leave behind. It gives goroutines
// some time to end.
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

// Main runs the tests of a package, and fails if one of their goroutines does not end.
func Main(m *testing.M) {
	code := m.Run()
	for end := time.Now().Add(patience); code == 0; {
		err := goleak.Find() // Find itself waits for up to a second
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
