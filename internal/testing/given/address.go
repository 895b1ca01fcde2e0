package given

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
)

var usedAddresses sync.Map

// Address returns an address for a server that stops and starts again. The port is below the range
// from which the system assigns ports, so only our tests use it, perhaps in another process. The function connects to the address to find out whether it is in use. It does
// not listen on it, because a child process could inherit the listener.
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
