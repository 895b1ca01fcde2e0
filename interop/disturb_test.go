package interop

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

const away = 10 * time.Second

// disturbed is a directory of files and the management server that serves it. A test disturbs both.
// Clients must lose no call in the meantime, and must receive changes afterwards.
type disturbed struct {
	dir, other string // dir is served; it is moved to other and back
	server     *process
	flags      []string
	a, b       string
}

func newDisturbed(t *testing.T) *disturbed {
	t.Helper()
	base := t.TempDir()
	d := &disturbed{
		dir:   filepath.Join(base, "endpoints"),
		other: filepath.Join(base, "other"),
		flags: []string{"--cache", filepath.Join(base, "cache"), "--removal-delay", "1h"}, // the file is away for as long as the calls take
		a:     backend(t),
		b:     backend(t),
	}
	try(t, os.Mkdir(d.dir, 0o700))
	write(t, d.file(), fileEndpoint{d.a, 0})
	d.server = serve(t, "127.0.0.1:0", d.dir, d.flags...)
	return d
}

func (d *disturbed) file() string { return filepath.Join(d.dir, "payments.yaml") }

func try(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// everything runs all disturbances, one after another. alive makes some calls. follows makes calls
// until the given backend gets one.
func (d *disturbed) everything(t *testing.T, alive func(), follows func(backend string)) {
	t.Helper()
	alive()
	try(t, os.Rename(d.dir, d.other))
	d.server.wait(t, "rejected, what it held before is still served")
	alive()
	try(t, os.Mkdir(d.dir, 0o700)) // an empty directory, as after a file system is unmounted
	d.server.wait(t, "rejected, what it held before is still served")
	alive()
	try(t, os.Remove(d.dir))
	try(t, os.Symlink(d.other, d.dir))
	write(t, d.file(), fileEndpoint{d.b, 0})
	follows(d.b)

	moved := filepath.Join(d.dir, "payments.yml")
	try(t, os.Rename(d.file(), moved))
	write(t, moved, fileEndpoint{d.a, 0})
	follows(d.a)
	try(t, os.Remove(moved))
	d.server.wait(t, "cluster has no file any more")
	alive()
	write(t, d.file(), fileEndpoint{d.b, 0})
	follows(d.b)

	try(t, os.WriteFile(d.file(), []byte("endpoints: ["), 0o600))
	d.server.wait(t, "rejected, what it held before is still served")
	d.server.kill()
	back := time.After(away)
	alive()
	<-back
	d.server = serve(t, d.server.address, d.dir, d.flags...)
	d.server.wait(t, "client connected")
	alive()
	write(t, d.file(), fileEndpoint{d.a, 0})
	follows(d.a)
}

// While the directory and its server are disturbed, no client loses a call: neither our channel,
// nor gRPC-Go's xds: channel in this process, nor a gRPC-Go client in another process.
func TestNoCallIsLost(t *testing.T) {
	d := newDisturbed(t)
	address := d.server.address
	ours, tree := dial(t, "eds://"+address+"/payments"), stockChannel(t, address, "payments")
	stock, probe := newStockClient(t, address, "xds:///payments"), newStockClient(t, address, "xds:///payments")
	stopOurs, stopTree, stopStock := traffic(t, ours, 2), traffic(t, tree, 2), stock.traffic(t)
	alive := func() {
		t.Helper()
		answered(t, ours, 200)
		answered(t, tree, 200)
		probe.answered(t, 200)
	}
	d.everything(t, alive, func(b string) {
		t.Helper()
		until(t, ours, b)
		until(t, tree, b)
		probe.until(t, b)
	})
	t.Logf("none lost of %d calls of eds:, %d of xds: and %d of a stock client", stopOurs(), stopTree(), stopStock())
}
