// Package testleak finds goroutines that the tests of a package leave behind, where ending
// one takes the system its time.
package testleak

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// patience is how long goroutines may take to end. On a busy machine the system takes seconds
// to close what watches files.
const patience = 30 * time.Second

// Main runs the tests of a package, and fails if a goroutine of theirs does not end.
func Main(m *testing.M) {
	code := m.Run()
	for end := time.Now().Add(patience); code == 0; {
		err := goleak.Find() // it waits for a second, if it must
		if err == nil {
			break
		}
		if time.Now().After(end) {
			fmt.Fprintln(os.Stderr, "goroutines are left:", err)
			code = 1
		}
	}
	os.Exit(code)
}
