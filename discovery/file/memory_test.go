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

func heapAfterGC() int64 {
	var m runtime.MemStats
	for range 3 { // an object with a finalizer is not freed in the first cycle
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func (c *fakeChannel) lastStateCount(port int) (n int) {
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

// The clusters of a file are edited one after another. Memory must then contain only one copy of
// the file, so unchanged clusters must not refer to old versions of the file.
func TestEditsDoNotRetainOldContent(t *testing.T) {
	path, ports := newPath(t), make([]int, 25)
	for i := range ports {
		ports[i] = 1
	}
	writeOld(t, path, manyClusters(ports, 60))
	c := watchCluster(t, path, "all")
	c.next(t)
	c.lastStateCount(0)
	initial := heapAfterGC()
	for i := range 20 {
		ports[i] = 2
		writeOld(t, path+".new", manyClusters(ports, 60))
		rename(t, path+".new", path)
		for c.lastStateCount(2) < (i+1)*60 {
			runtime.Gosched()
		}
	}
	if growth := heapAfterGC() - initial; growth > 8<<20 {
		t.Errorf("20 edits take %d kB, want the memory for one copy", growth>>10)
	}
}

// Many channels to one file are opened and closed one after another. The answers that are stored
// for these channels must take a limited amount of memory.
func TestMemoryOfClosedChannels(t *testing.T) {
	path := newPath(t)
	writeOld(t, path, manyClusters([]int{1, 1, 1}, 700))
	initial := heapAfterGC()
	for i := range 50 {
		c := newFakeChannel()
		r, err := given.Builder(Scheme).Build(target(t, fmt.Sprintf("file://%s?cluster=all&authority=a%d", path, i)), c, resolver.BuildOptions{})
		if err != nil {
			t.Fatal(err)
		}
		c.next(t)
		r.Close()
	}
	if growth := heapAfterGC() - initial; growth > 64<<20 {
		t.Errorf("50 closed channels take %d kB, want 64 MiB at most", growth>>10)
	}
}

// The stored answer of an idle channel must be usable after the file was deleted and its content
// was garbage-collected.
func TestStoredClustersAfterFileIsDeleted(t *testing.T) {
	path := newPath(t)
	writeOld(t, path, clustersFile(aggregate("all", "a, b"), static("a", "10.0.0.1"), static("b", "10.0.0.2")))
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
		heapAfterGC() // frees the content of the file unless the source still refers to it
	}
}
