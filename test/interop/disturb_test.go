package interop

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/understudy-lb/understudy/internal/testing/given"
)

const outage = 10 * time.Second

// disturbedServer is a management server and the directory of files that it serves. A test disturbs
// both. No call of a client may fail meanwhile, and later changes must reach the clients.
type disturbedServer struct {
	dir, other string // the server serves dir; the test renames dir to other
	server     *process
	flags      []string
	a, b       string
}

func newDisturbedServer(t *testing.T) *disturbedServer {
	t.Helper()
	base := t.TempDir()
	d := &disturbedServer{
		dir:   filepath.Join(base, "endpoints"),
		other: filepath.Join(base, "other"),
		flags: []string{"--cache", filepath.Join(base, "cache"), "--removal-delay", "1h"}, // longer than the test removes the file
		a:     backend(t),
		b:     backend(t),
	}
	must(t, os.Mkdir(d.dir, 0o700))
	write(t, d.file(), fileEndpoint{d.a, 0})
	d.server = serve(t, given.Address(t), d.dir, d.flags...)
	return d
}

func (d *disturbedServer) file() string { return filepath.Join(d.dir, "payments.yaml") }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// disturb causes all disturbances, one after another. makeCalls must make some calls. callUntil
// must make calls until the given backend gets a call.
func (d *disturbedServer) disturb(t *testing.T, makeCalls func(), callUntil func(backend string)) {
	t.Helper()
	makeCalls()
	must(t, os.Rename(d.dir, d.other))
	d.server.wait(t, "rejected, its last good content is still served")
	makeCalls()
	must(t, os.Mkdir(d.dir, 0o700)) // an empty directory, as after a file system is unmounted
	d.server.wait(t, "rejected, its last good content is still served")
	makeCalls()
	must(t, os.Remove(d.dir))
	must(t, os.Symlink(d.other, d.dir))
	write(t, d.file(), fileEndpoint{d.b, 0})
	callUntil(d.b)

	moved := filepath.Join(d.dir, "payments.yml")
	must(t, os.Rename(d.file(), moved))
	write(t, moved, fileEndpoint{d.a, 0})
	callUntil(d.a)
	must(t, os.Remove(moved))
	d.server.wait(t, "cluster no longer has a file")
	makeCalls()
	write(t, d.file(), fileEndpoint{d.b, 0})
	callUntil(d.b)

	must(t, os.WriteFile(d.file(), []byte("endpoints: ["), 0o600))
	d.server.wait(t, "rejected, its last good content is still served")
	d.server.kill()
	restart := time.After(outage)
	makeCalls()
	<-restart
	d.server = serve(t, d.server.address, d.dir, d.flags...)
	d.server.wait(t, "client connected")
	makeCalls()
	write(t, d.file(), fileEndpoint{d.a, 0})
	callUntil(d.a)
}

// While the management server and its directory are disturbed, no call may fail: neither of our
// channel, nor of gRPC-Go's xds: channel in this process, nor of a gRPC-Go client in another
// process.
func TestDisturbancesLoseNoCall(t *testing.T) {
	t.Parallel()
	d := newDisturbedServer(t)
	address := d.server.address
	ours, tree := dial(t, "eds://"+address+"/payments"), stockChannel(t, address, "payments")
	stock, probe := newStockClient(t, address, "xds:///payments"), newStockClient(t, address, "xds:///payments")
	stopOurs, stopTree, stopStock := traffic(t, ours, 2), traffic(t, tree, 2), stock.traffic(t)
	makeCalls := func() {
		t.Helper()
		callN(t, ours, 200)
		callN(t, tree, 200)
		probe.callN(t, 200)
	}
	d.disturb(t, makeCalls, func(b string) {
		t.Helper()
		callUntil(t, ours, b)
		callUntil(t, tree, b)
		probe.callUntil(t, b)
	})
	t.Logf("none lost of %d calls of eds:, %d of xds: and %d of a stock client", stopOurs(), stopTree(), stopStock())
}
