package kubernetes

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func manyEndpoints(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,{"addresses":["10.1.%d.%d"]}`, i/250, i%250)
	}
	return b.String()[1:]
}

// A slice that exceeds one of the API's limits must not end the watch. A new slice must be left
// out. A known slice must stay in use with its last good content. The answer must have a note until
// the slice is within the limits again.
func TestSliceBeyondLimits(t *testing.T) {
	manyPorts := strings.Replace(sliceEvent("MODIFIED", "b", "10.0.0.9"), `"ports":[`, `"ports":[`+strings.Repeat(`{"port":1},`, 100), 1)
	for what, test := range map[string]struct {
		tooLarge string
		note     string
		out      bool
	}{
		"endpoints":            {sliceEvent("MODIFIED", "b", manyEndpoints(1001)), "more than 1000 endpoints", false},
		"endpoints of 2 bytes": {sliceEvent("MODIFIED", "b", "{}"+strings.Repeat(",0", 1_000_000)), "a JSON number for", false},
		"empty endpoints":      {sliceEvent("MODIFIED", "b", "{}"+strings.Repeat(",{}", 1_000_000)), "more than 1000 endpoints", false},
		"ports":                {manyPorts, "100 ports", false},
		"another type":         {strings.Replace(sliceEvent("MODIFIED", "b", "10.0.0.9"), `"endpoints":[`, `"endpoints":7,"x":[`, 1), "it has a JSON number for endpoints", false},
		"an object of no type": {`{"type":"MODIFIED","object":[1]}` + "\n", "it has a JSON array for object", false},
		"more than 8 MiB":      {sliceEvent("MODIFIED", "b", `{"addresses":["`+strings.Repeat("1", maxEvent)+`"]}`), "more than 8 MiB", false},
		"a new slice":          {sliceEvent("ADDED", "x", manyEndpoints(1001)), `slice "x" is ignored: it has more than 1000 endpoints`, false},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &fakeAPIServer{}
				s.serve = func(n int, _ url.Values, w io.Writer, ended <-chan struct{}) int {
					writeAll(w, sliceEvent("ADDED", "a", "10.0.0.1"), sliceEvent("ADDED", "b", "10.0.0.2"), bookmark("7", true))
					time.Sleep(time.Second)
					writeAll(w, test.tooLarge, sliceEvent("MODIFIED", "a", "10.0.0.3"))
					time.Sleep(time.Second)
					writeAll(w, sliceEvent("MODIFIED", "b", "10.0.0.4"), sliceEvent("DELETED", "x", ""))
					return waitUntilDone(ended)
				}
				l, stop := startSource(t, s, query{})
				time.Sleep(1500 * time.Millisecond)
				a := l.answer()
				if notes := strings.Join(a.Notes, "\n"); formatEndpoints(a) != "0/10.0.0.2:80=healthy 0/10.0.0.3:80=healthy" || !strings.Contains(notes, test.note) {
					t.Errorf("the answer is %s, with the notes %q, want %q", formatEndpoints(a), notes, test.note)
				}
				time.Sleep(time.Second)
				a = l.answer()
				if kinds, _ := s.requests(); formatEndpoints(a) != "0/10.0.0.3:80=healthy 0/10.0.0.4:80=healthy" || kinds != "all" {
					t.Errorf("after the correction the answer is %s, with the notes %q, after the requests %s", formatEndpoints(a), a.Notes, kinds)
				}
				if strings.Contains(test.tooLarge, `"name":"b"`) && what != "more than 8 MiB" && a.Notes != nil {
					t.Errorf("after the correction the notes are %q", a.Notes)
				}
				stop()
			})
		})
	}
}

func TestInitialSliceBeyondLimits(t *testing.T) {
	for _, list := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := &fakeAPIServer{}
			s.serve = func(n int, q url.Values, w io.Writer, ended <-chan struct{}) int {
				tooLarge, valid := sliceEvent("ADDED", "a", manyEndpoints(1001)), sliceEvent("ADDED", "b", "10.0.0.2")
				switch {
				case list && q.Has("sendInitialEvents"):
					return 400
				case list && !q.Has("watch"):
					object := func(e string) string { return strings.TrimSuffix(e[strings.Index(e, `"object":`)+9:], "}\n") }
					writeAll(w, `{"items":[`+object(tooLarge)+`,`+object(valid)+`,{"metadata":7}],"x":{"y":[1]},"metadata":{"resourceVersion":"5"}}`)
					return 0
				case q.Get("resourceVersion") == "":
					writeAll(w, tooLarge, valid, bookmark("7", true))
				}
				writeAll(w, "")
				return waitUntilDone(ended)
			}
			l, stop := startSource(t, s, query{})
			time.Sleep(time.Second)
			if a := l.answer(); formatEndpoints(a) != "0/10.0.0.2:80=healthy" || !strings.Contains(strings.Join(a.Notes, "\n"), `slice "a" is ignored: it has more than 1000 endpoints`) {
				t.Errorf("the answer is %s, with the notes %q", formatEndpoints(a), a.Notes)
			}
			stop()
		})
	}
}

// The number of slices and endpoints in memory must be limited, even if the server sends more.
func TestTooManySlices(t *testing.T) {
	c := newCollection()
	for i := range 65_000 {
		c.put(sliceOf(t, fmt.Sprint("s", i), "IPv4", "web", `"endpoints":[{"addresses":["10.0.0.1"]}]`), nil, nil)
	}
	if len(c.slices) != maxSlices || len(c.notes) != maxNotes {
		t.Errorf("%d slices and %d notes, want %d and %d", len(c.slices), len(c.notes), maxSlices, maxNotes)
	}
	c.put(sliceOf(t, "s5", "IPv4", "web", `"endpoints":[]`), nil, nil)
	if len(c.slices["s5"].endpoints) != 0 {
		t.Error("an update of a known slice has no effect")
	}
	c = newCollection()
	largeSlice := sliceOf(t, "", "IPv4", "web", `"endpoints":[`+manyEndpoints(1000)+`]`)
	for i := range 300 {
		copied := *largeSlice
		copied.name = fmt.Sprint("s", i)
		c.put(&copied, nil, nil)
	}
	for i := range 300 {
		c.remove(fmt.Sprint("s", i))
		copied := *largeSlice
		copied.name = fmt.Sprint("t", i)
		c.put(&copied, nil, nil)
	}
	if c.endpoints != maxTotalEndpoints || len(c.slices) != maxTotalEndpoints/1000 {
		t.Errorf("%d endpoints in %d slices, want %d", c.endpoints, len(c.slices), maxTotalEndpoints)
	}
}

// If a list or the initial slices of a watch are not complete after a minute, this must count as an
// error.
func TestInitialSlicesTimeout(t *testing.T) {
	for what, test := range map[string]struct {
		code     int
		begin    string
		repeated string
		want     string
	}{
		"the initial slices of a watch": {0, "", sliceEvent("ADDED", "a", "10.0.0.1"), "did not send the initial slices in time"},
		"a list":                        {400, `{"items":[`, `{"metadata":{"name":"a"}},`, "did not answer in time"},
		"within an object":              {0, `{"type":"`, "a", "did not send the initial slices in time"},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &fakeAPIServer{}
				s.serve = func(n int, q url.Values, w io.Writer, ended <-chan struct{}) int {
					if q.Has("sendInitialEvents") && test.code != 0 {
						return test.code
					}
					for writeAll(w, test.begin); ; writeAll(w, test.repeated) {
						select {
						case <-ended:
							return 0
						case <-time.After(100 * time.Millisecond):
						}
					}
				}
				l, stop := startSource(t, s, query{})
				time.Sleep(61 * time.Second)
				if got := l.takeReports(); !strings.HasPrefix(got, "1m0s fail ") || !strings.Contains(got, test.want) {
					t.Errorf("the receiver got %q, want %q after a minute", got, test.want)
				}
				stop()
			})
		})
	}
}

// The last good content of a slice that exceeds a limit must also count towards the limits.
func TestLastGoodSlicesCountTowardsLimits(t *testing.T) {
	largeSlice := sliceOf(t, "", "IPv4", "web", `"endpoints":[`+manyEndpoints(1000)+`]`)
	k := newKnownSlices()
	for round := range 3 {
		all := newCollection()
		for i := range maxTotalEndpoints / 1000 {
			copied := *largeSlice
			copied.name = fmt.Sprint("r", round, "-", i)
			all.put(&copied, nil, nil)
		}
		for name, old := range k.slices {
			copied := new(slice)
			copied.name = name
			all.put(copied, errors.New("it does not parse"), old)
		}
		k.replace(all, time.Now())
	}
	if k.endpoints > maxTotalEndpoints {
		t.Errorf("%d endpoints after three lists, want at most %d", k.endpoints, maxTotalEndpoints)
	}
}

// A slice in memory must contain only the fields that are used, even if its event was large.
func TestSliceDoesNotRetainEvent(t *testing.T) {
	const size = 1 << 20
	longText := strings.Repeat("x", size)
	for what, replacement := range map[string][2]string{
		"message":    {`"object":{`, `"object":{"message":"` + longText + `",`},
		"version":    {`"resourceVersion":"8"`, `"resourceVersion":"` + longText + `"`},
		"annotation": {`"metadata":{`, `"metadata":{"annotations":{"k8s.io/initial-events-end":"` + longText + `"},`},
		"name":       {`"name":"a`, `"name":"` + longText},
	} {
		k := newKnownSlices()
		initialHeap := heap()
		for i := range 20 {
			e := new(event)
			text := strings.Replace(sliceEvent("ADDED", fmt.Sprint("a", i), "10.0.0.1"), replacement[0], replacement[1], 1)
			if err := json.Unmarshal([]byte(text), e); err != nil {
				t.Fatal(err)
			}
			k.put(e.Object.slice(), e.problem, nil)
		}
		if growth := heap() - initialHeap; growth > 5*size {
			t.Errorf("20 slices with a long %s keep %d KiB", what, growth>>10)
		}
		runtime.KeepAlive(k)
	}
}
