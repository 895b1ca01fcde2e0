package failover_test

import (
	"fmt"
	"testing"

	"google.golang.org/grpc/credentials/insecure"

	"github.com/understudy-lb/understudy/internal/testing/testlog"
)

var logged = testlog.CaptureWarnings()

// The option prefer has no effect on DNS entries, because DNS does not contain the zones of
// endpoints. This must be logged once for each entry.
func TestPreferIsLoggedForDNS(t *testing.T) {
	us := startServer(t, "us", insecure.NewCredentials())
	const note = "prefer=zone has no effect on endpoints without localities, such as those of DNS"
	for _, target := range []string{"failover:///%s,%[1]s?prefer=zone&zone=a", "failover:///dns:///%s?prefer=zone&zone=a"} {
		before := logged.Count(note)
		conn := dial(t, fmt.Sprintf(target, us.address), plaintext)
		await(t, conn, "us as "+us.address)
		if n := logged.Count(note) - before; n < 1 || n > 2 {
			t.Errorf("%s: the log notes %d times that prefer has no effect, want once for each mechanism that has answered", target, n)
		}
	}
}
