package pickfirst

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

// TestMain increases the number of schedules that rapid draws, because some differences from
// grpc-go appear only once in a thousand schedules.
func TestMain(m *testing.M) {
	flag.Set("rapid.checks", "2000")
	goleak.VerifyTestMain(m)
}
