// Package testleak finds goroutines that the tests of a package leave behind. It allows for
// goroutines that take time to end.
package testleak

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// patience is how long goroutines may take to end. A busy machine takes seconds to close file
// notifications.
const patience = 30 * time.Second

// Main runs the tests of a package, and fails if one of their goroutines does not end.
func Main(m *testing.M) {
	code := m.Run()
	for end := time.Now().Add(patience); code == 0; {
		err := goleak.Find() // it waits for a second, if it must
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
