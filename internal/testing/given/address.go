package given

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
)

var usedAddresses sync.Map

// Address returns an address for a server that will be stopped and started again. The system never
// assigns ports this low, so only our own tests can be using it, possibly in another process. To
// find out, we try to connect. We don't listen there ourselves because a child process could
// inherit the listener.
func Address(t *testing.T) string {
	t.Helper()
	for {
		address := fmt.Sprintf("127.0.0.1:%d", 20000+rand.IntN(10000))
		if _, used := usedAddresses.LoadOrStore(address, true); used {
			continue
		}
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return address
		}
		_ = conn.Close()
	}
}
