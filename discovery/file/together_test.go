package file

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/envoy/clusterfile"
	"github.com/understudy-lb/understudy/internal/testing/flat"
)

func manyEndpoints(port int) string {
	var b strings.Builder
	b.WriteString("endpoints:\n- lb_endpoints:\n")
	for i := range 1900 {
		fmt.Fprintf(&b, "  - endpoint: {address: {socket_address: {address: 10.0.%d.%d, port_value: %d}}}\n", i/250, i%250, port)
	}
	return b.String()
}

type channelReports struct {
	answers  chan discovery.Answer
	failures chan error
}

func (h *channelReports) Update(a discovery.Answer) error { h.answers <- a; return nil }
func (h *channelReports) Fail(err error)                  { h.failures <- err }

func startSource(t *testing.T, path string) *channelReports {
	t.Helper()
	h := &channelReports{make(chan discovery.Answer, 10), make(chan error, 10)}
	w, err := (&source{watched: watched{path: path}}).Start(flat.Receiver(h))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return h
}

func receive[T any](t *testing.T, from chan T) (what T) {
	t.Helper()
	select {
	case what = <-from:
	case <-time.After(testTimeout):
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

// A process must parse a file once, and all channels must share the result, including channels that
// are opened later. The cost of an edit then does not depend on the number of channels.
func TestFileIsParsedOnce(t *testing.T) {
	path := newPath(t)
	writeOld(t, path, manyEndpoints(1))
	var all []*channelReports
	for range 50 {
		all = append(all, startSource(t, path))
	}
	for _, h := range all {
		receive(t, h.answers)
	}
	oneParse := allocated(func() {
		if _, err := clusterfile.LoadFrom(strings.NewReader(manyEndpoints(2)), path); err != nil {
			t.Fatal(err)
		}
	})
	allEdits := allocated(func() {
		replace(t, path, manyEndpoints(2))
		all = append(all, startSource(t, path))
		for _, h := range all[:50] {
			receive(t, h.answers)
		}
	})
	if allEdits > 4*oneParse {
		t.Errorf("an edit allocated %d kB for 50 channels, want about the %d kB of one", allEdits>>10, oneParse>>10)
	}
	lateChannel := startSource(t, path)
	replace(t, path, manyEndpoints(3))
	one := receive(t, all[0].answers)
	if two := receive(t, all[1].answers); first(two) != first(one) {
		t.Error("two channels have endpoints of their own")
	}
	for a := receive(t, lateChannel.answers); first(a) != first(one); a = receive(t, lateChannel.answers) {
		if strings.HasSuffix(first(a).Addresses[0], ":3") {
			t.Fatal("a channel that came later has endpoints of its own")
		}
	}
}

func first(a discovery.Answer) *discovery.Endpoint {
	return &a.Priorities[0].Localities[0].Endpoints[0]
}

// An invalid file must also be parsed only once for all channels. Finding the position of the
// mistake may cost at most as much as parsing the file again.
func TestMistakeIsFoundOnce(t *testing.T) {
	for what, content := range map[string]string{
		"of syntax":  strings.Replace(manyEndpoints(2), "10.0.4.1,", strings.Repeat(`"a", `, 100)+`"10.0.4.1,`, 1),
		"of a field": strings.Replace(manyEndpoints(2), "10.0.4.1,", "10.0.4.1, a: b,", 1),
	} {
		path := newPath(t)
		writeOld(t, path, manyEndpoints(1))
		var all []*channelReports
		for range 20 {
			all = append(all, startSource(t, path))
		}
		for _, h := range all {
			receive(t, h.answers)
		}
		oneParse := allocated(func() { _, _ = clusterfile.LoadFrom(strings.NewReader(manyEndpoints(2)), path) })
		var first error
		allEdits := allocated(func() {
			replace(t, path, content)
			for _, h := range all {
				err := receive(t, h.failures)
				if first == nil {
					first = err
				}
				if err != first {
					t.Fatalf("%s: %v and %v", what, err, first)
				}
			}
		})
		if text := first.Error(); !strings.HasPrefix(text, path+":1004:") && !strings.Contains(text, " that begins at 1004:") {
			t.Errorf("%s: %v, want line 1004", what, first)
		}
		if allEdits > 4*oneParse {
			t.Errorf("%s: it allocated %d kB for 20 channels, want about the %d kB of a parse", what, allEdits>>10, oneParse>>10)
		}
	}
}

// Each channel must get the position of an invalid field, even if the channel is opened after the
// parsed YAML was garbage-collected.
func TestPositionsAfterGC(t *testing.T) {
	path := newPath(t)
	writeOld(t, path, onePort(1)+"  priority: 3\n")
	all := []*channelReports{startSource(t, path)}
	for _, h := range append(all, startSource(t, path)) {
		if got, want := receive(t, h.failures).Error(), path+":4:13: priority 3 is used"; !strings.HasPrefix(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
		runtime.GC()
		runtime.GC()
	}
}
