package pickfirst

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

// More schedules than rapid's hundred: some differences from gRPC-Go took a
// thousand to be found.
func TestMain(m *testing.M) {
	flag.Set("rapid.checks", "2000")
	goleak.VerifyTestMain(m)
}
