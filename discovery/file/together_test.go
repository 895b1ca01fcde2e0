package file

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/clusterfile"
	"github.com/understudy-lb/understudy/internal/testing/flat"
)

func large(port int) string {
	var b strings.Builder
	b.WriteString("endpoints:\n- lb_endpoints:\n")
	for i := range 1900 {
		fmt.Fprintf(&b, "  - endpoint: {address: {socket_address: {address: 10.0.%d.%d, port_value: %d}}}\n", i/250, i%250, port)
	}
	return b.String()
}

type heard struct {
	answers  chan discovery.Answer
	failures chan error
}

func (h *heard) Update(a discovery.Answer) error { h.answers <- a; return nil }
func (h *heard) Fail(err error)                  { h.failures <- err }

func listen(t *testing.T, path string) *heard {
	t.Helper()
	h := &heard{make(chan discovery.Answer, 10), make(chan error, 10)}
	w, err := (&source{path: path}).Start(flat.Receiver(h))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return h
}

func next[T any](t *testing.T, from chan T) (what T) {
	t.Helper()
	select {
	case what = <-from:
	case <-time.After(patient):
		t.Fatal("nothing was received")
	}
	return what
}

func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// A process must parse a file once, and all channels must share the result, even if they open
// later. The cost of an edit then does not depend on the number of channels.
func TestAFileIsParsedOnceForAllChannels(t *testing.T) {
	path := newPath(t)
	writeBefore(t, path, large(1))
	var all []*heard
	for range 50 {
		all = append(all, listen(t, path))
	}
	for _, h := range all {
		next(t, h.answers)
	}
	once := allocated(func() {
		if _, err := clusterfile.LoadFrom(strings.NewReader(large(2)), path); err != nil {
			t.Fatal(err)
		}
	})
	cost := allocated(func() {
		replace(t, path, large(2))
		all = append(all, listen(t, path))
		for _, h := range all[:50] {
			next(t, h.answers)
		}
	})
	if cost > 4*once {
		t.Errorf("an edit allocated %d kB for 50 channels, want about the %d kB of one", cost>>10, once>>10)
	}
	late := listen(t, path)
	replace(t, path, large(3))
	one := next(t, all[0].answers)
	if two := next(t, all[1].answers); first(two) != first(one) {
		t.Error("two channels have endpoints of their own")
	}
	for a := next(t, late.answers); first(a) != first(one); a = next(t, late.answers) {
		if strings.HasSuffix(first(a).Addresses[0], ":3") {
			t.Fatal("a channel that came later has endpoints of its own")
		}
	}
}

func first(a discovery.Answer) *discovery.Endpoint {
	return &a.Priorities[0].Localities[0].Endpoints[0]
}

// An invalid file must also be parsed only once for all channels. Finding the position of the
// mistake may cost no more than parsing the file again.
func TestAMistakeIsFoundOnceForAllChannels(t *testing.T) {
	for what, mistake := range map[string]string{
		"of syntax":  strings.Replace(large(2), "10.0.4.1,", strings.Repeat(`"a", `, 100)+`"10.0.4.1,`, 1),
		"of a field": strings.Replace(large(2), "10.0.4.1,", "10.0.4.1, a: b,", 1),
	} {
		path := newPath(t)
		writeBefore(t, path, large(1))
		var all []*heard
		for range 20 {
			all = append(all, listen(t, path))
		}
		for _, h := range all {
			next(t, h.answers)
		}
		once := allocated(func() { _, _ = clusterfile.LoadFrom(strings.NewReader(large(2)), path) })
		var first error
		cost := allocated(func() {
			replace(t, path, mistake)
			for _, h := range all {
				err := next(t, h.failures)
				if first == nil {
					first = err
				}
				if err != first {
					t.Fatalf("%s: %v and %v", what, err, first)
				}
			}
		})
		if want := path + ":1004:"; !strings.Contains(first.Error(), want) {
			t.Errorf("%s: %v, want %s", what, first, want)
		}
		if cost > 4*once {
			t.Errorf("%s: it allocated %d kB for 20 channels, want about the %d kB of a parse", what, cost>>10, once>>10)
		}
	}
}

// Each channel must get the position of an invalid field, even if it opens after the parsed YAML
// was garbage-collected.
func TestPlacesAreFoundLater(t *testing.T) {
	path := newPath(t)
	writeBefore(t, path, onePort(1)+"  priority: 3\n")
	all := []*heard{listen(t, path)}
	for _, h := range append(all, listen(t, path)) {
		if got, want := next(t, h.failures).Error(), path+":4:13: priority 3 is used"; !strings.HasPrefix(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
		runtime.GC()
		runtime.GC()
	}
}
