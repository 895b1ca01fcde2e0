package pickfirst

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

// TestMain makes rapid run more schedules than by default: some differences from grpc-go appear
// only once in a thousand.
func TestMain(m *testing.M) {
	flag.Set("rapid.checks", "2000")
	goleak.VerifyTestMain(m)
}
