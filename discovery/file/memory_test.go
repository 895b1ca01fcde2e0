package file

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/testing/given"
)

func manyClusters(ports []int, endpoints int) string {
	var names, list []string
	for i, port := range ports {
		name := fmt.Sprint("c", i)
		var b strings.Builder
		b.WriteString("- name: " + name + "\n  type: STATIC\n  load_assignment:\n    endpoints:\n    - lb_endpoints:\n")
		for n := range endpoints {
			fmt.Fprintf(&b, "      - endpoint: {address: {socket_address: {address: 10.%d.%d.%d, port_value: %d}}}\n", i, n/250, n%250, port)
		}
		names, list = append(names, name), append(list, b.String())
	}
	return clustersFile(append(list, aggregate("all", strings.Join(names, ", ")))...)
}

func heap() int64 {
	var m runtime.MemStats
	for range 3 { // repeated, because freeing an object with a finalizer takes more than one cycle
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func (c *fakeChannel) drain(port int) (n int) {
	for len(c.states) > 0 {
		n = 0
		for _, e := range (<-c.states).Endpoints {
			if strings.HasSuffix(e.Addresses[0].Addr, fmt.Sprint(":", port)) {
				n++
			}
		}
	}
	return n
}

// The clusters of a file are edited one after another. Memory must then hold only one copy of the
// file: unchanged clusters must not refer to old versions of it.
func TestEditsOfClustersLeaveNothingBehind(t *testing.T) {
	path, ports := newPath(t), make([]int, 25)
	for i := range ports {
		ports[i] = 1
	}
	writeBefore(t, path, manyClusters(ports, 60))
	c := watchCluster(t, path, "all")
	c.next(t)
	c.drain(0)
	before := heap()
	for i := range 20 {
		ports[i] = 2
		replace(t, path, manyClusters(ports, 60))
		for c.drain(2) < (i+1)*60 {
			runtime.Gosched()
		}
	}
	if grown := heap() - before; grown > 8<<20 {
		t.Errorf("20 edits take %d kB, want the memory for one copy", grown>>10)
	}
}

// Many channels to one file are opened and closed in turn. The answers that are stored for them
// must take a limited amount of memory.
func TestClosedChannelsOfClustersTakeLittle(t *testing.T) {
	path := newPath(t)
	writeBefore(t, path, manyClusters([]int{1, 1, 1}, 700))
	before := heap()
	for i := range 150 {
		c := newFakeChannel()
		r, err := given.Builder(Scheme).Build(target(t, fmt.Sprintf("file://%s?cluster=all&authority=a%d", path, i)), c, resolver.BuildOptions{})
		if err != nil {
			t.Fatal(err)
		}
		c.next(t)
		r.Close()
	}
	if grown := heap() - before; grown > 64<<20 {
		t.Errorf("150 closed channels take %d kB, want 64 MiB at most", grown>>10)
	}
}

// A channel is idle. Its stored answer must be usable after the file was deleted and its content
// was garbage-collected.
func TestClustersAreKeptWhileAChannelIsIdle(t *testing.T) {
	path := newPath(t)
	writeBefore(t, path, clustersFile(aggregate("all", "a, b"), static("a", "10.0.0.1"), static("b", "10.0.0.2")))
	builder, want := given.Builder(Scheme), `10.0.0.1:1["a/child0" "/"] 10.0.0.2:1["b/child0" "/"]`
	for range 2 {
		c := newFakeChannel()
		r, err := builder.Build(target(t, "file://"+path+"?cluster=all"), c, resolver.BuildOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := c.next(t); got != want {
			t.Errorf("state = %s, want %s", got, want)
		}
		r.Close()
		_ = os.Remove(path)
		heap() // frees the content unless something still refers to it
	}
}
