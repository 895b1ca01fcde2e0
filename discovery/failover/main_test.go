package failover

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	flag.Set("test.parallel", "8") // the tests mostly wait
	goleak.VerifyTestMain(m)
}
