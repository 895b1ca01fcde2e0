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

func many(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,{"addresses":["10.1.%d.%d"]}`, i/250, i%250)
	}
	return b.String()[1:]
}

// A slice exceeds one of the API's limits. This must not end the watch: if the slice is new, it is
// left out, and if it is known, its last good content stays in use. The answer must have a note
// until the slice is within the limits again.
func TestOneSliceBeyondTheBounds(t *testing.T) {
	manyPorts := strings.Replace(at("MODIFIED", "b", "10.0.0.9"), `"ports":[`, `"ports":[`+strings.Repeat(`{"port":1},`, 100), 1)
	for what, test := range map[string]struct {
		beyond string
		note   string
		out    bool
	}{
		"endpoints":            {at("MODIFIED", "b", many(1001)), "more than 1000 endpoints", false},
		"endpoints of 2 bytes": {at("MODIFIED", "b", "{}"+strings.Repeat(",0", 1_000_000)), "a JSON number for", false},
		"empty endpoints":      {at("MODIFIED", "b", "{}"+strings.Repeat(",{}", 1_000_000)), "more than 1000 endpoints", false},
		"ports":                {manyPorts, "100 ports", false},
		"another type":         {strings.Replace(at("MODIFIED", "b", "10.0.0.9"), `"endpoints":[`, `"endpoints":7,"x":[`, 1), "7 given, want an array", false},
		"an object of no type": {`{"type":"MODIFIED","object":[1]}` + "\n", "it has a JSON array for object", false},
		"more than 8 MiB":      {at("MODIFIED", "b", `{"addresses":["`+strings.Repeat("1", maxEvent)+`"]}`), "more than 8 MiB", false},
		"a new slice":          {at("ADDED", "x", many(1001)), `slice "x" is left out: it has more than 1000 endpoints`, false},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &scripted{}
				s.serve = func(n int, _ url.Values, w io.Writer, ended <-chan struct{}) int {
					send(w, at("ADDED", "a", "10.0.0.1"), at("ADDED", "b", "10.0.0.2"), bookmark("7", true))
					time.Sleep(time.Second)
					send(w, test.beyond, at("MODIFIED", "a", "10.0.0.3"))
					time.Sleep(time.Second)
					send(w, at("MODIFIED", "b", "10.0.0.4"), at("DELETED", "x", ""))
					return hold(ended)
				}
				l, stop := listen(t, s, query{})
				time.Sleep(1500 * time.Millisecond)
				a := l.answer()
				if notes := strings.Join(a.Notes, "\n"); flat(a) != "0/10.0.0.2:80=healthy 0/10.0.0.3:80=healthy" || !strings.Contains(notes, test.note) {
					t.Errorf("the answer is %s, with the notes %q, want %q", flat(a), notes, test.note)
				}
				time.Sleep(time.Second)
				a = l.answer()
				if kinds, _ := s.requests(); flat(a) != "0/10.0.0.3:80=healthy 0/10.0.0.4:80=healthy" || kinds != "all" {
					t.Errorf("after the correction the answer is %s, with the notes %q, after the requests %s", flat(a), a.Notes, kinds)
				}
				if strings.Contains(test.beyond, `"name":"b"`) && what != "more than 8 MiB" && a.Notes != nil {
					t.Errorf("after the correction the notes are %q", a.Notes)
				}
				stop()
			})
		})
	}
}

func TestOneSliceBeyondTheBoundsAtFirst(t *testing.T) {
	for _, list := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := &scripted{}
			s.serve = func(n int, q url.Values, w io.Writer, ended <-chan struct{}) int {
				beyond, well := at("ADDED", "a", many(1001)), at("ADDED", "b", "10.0.0.2")
				switch {
				case list && q.Has("sendInitialEvents"):
					return 400
				case list && !q.Has("watch"):
					object := func(e string) string { return strings.TrimSuffix(e[strings.Index(e, `"object":`)+9:], "}\n") }
					send(w, `{"items":[`+object(beyond)+`,`+object(well)+`,{"metadata":7}],"x":{"y":[1]},"metadata":{"resourceVersion":"5"}}`)
					return 0
				case q.Get("resourceVersion") == "":
					send(w, beyond, well, bookmark("7", true))
				}
				send(w, "")
				return hold(ended)
			}
			l, stop := listen(t, s, query{})
			time.Sleep(time.Second)
			if a := l.answer(); flat(a) != "0/10.0.0.2:80=healthy" || !strings.Contains(strings.Join(a.Notes, "\n"), `slice "a" is left out: it has more than 1000 endpoints`) {
				t.Errorf("the answer is %s, with the notes %q", flat(a), a.Notes)
			}
			stop()
		})
	}
}

// The number of slices and endpoints in memory must be limited, however many the server sends.
func TestTooManySlices(t *testing.T) {
	c := newCollection()
	for i := range 65_000 {
		c.put(sliceOf(t, fmt.Sprint("s", i), "IPv4", "web", `"endpoints":[{"addresses":["10.0.0.1"]}]`), nil, nil)
	}
	if len(c.slices) != maxSlices || len(c.wrong) != maxNotes {
		t.Errorf("%d slices and %d notes, want %d and %d", len(c.slices), len(c.wrong), maxSlices, maxNotes)
	}
	c.put(sliceOf(t, "s5", "IPv4", "web", `"endpoints":[]`), nil, nil)
	if len(c.slices["s5"].Endpoints) != 0 {
		t.Error("an update of a known slice has no effect")
	}
	c = newCollection()
	full := sliceOf(t, "", "IPv4", "web", `"endpoints":[`+many(1000)+`]`)
	for i := range 300 {
		one := *full
		one.Metadata.Name = fmt.Sprint("s", i)
		c.put(&one, nil, nil)
	}
	for i := range 300 {
		c.remove(fmt.Sprint("s", i))
		one := *full
		one.Metadata.Name = fmt.Sprint("t", i)
		c.put(&one, nil, nil)
	}
	if c.endpoints != maxAll || len(c.slices) != maxAll/1000 {
		t.Errorf("%d endpoints in %d slices, want %d", c.endpoints, len(c.slices), maxAll)
	}
}

// A list, or the beginning of a watch, has not ended after a minute. This must count as an error.
func TestBodiesThatNeverEnd(t *testing.T) {
	for what, test := range map[string]struct {
		code  int
		begin string
		drip  string
		want  string
	}{
		"the initial slices of a watch": {0, "", at("ADDED", "a", "10.0.0.1"), "did not send the initial slices in time"},
		"a list":                        {400, `{"items":[`, `{"metadata":{"name":"a"}},`, "did not answer in time"},
		"within an object":              {0, `{"type":"`, "a", "did not send the initial slices in time"},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &scripted{}
				s.serve = func(n int, q url.Values, w io.Writer, ended <-chan struct{}) int {
					if q.Has("sendInitialEvents") && test.code != 0 {
						return test.code
					}
					for send(w, test.begin); ; send(w, test.drip) {
						select {
						case <-ended:
							return 0
						case <-time.After(100 * time.Millisecond):
						}
					}
				}
				l, stop := listen(t, s, query{})
				time.Sleep(61 * time.Second)
				if got := l.said(); !strings.HasPrefix(got, "1m0s fail ") || !strings.Contains(got, test.want) {
					t.Errorf("the receiver got %q, want %q after a minute", got, test.want)
				}
				stop()
			})
		})
	}
}

// The last good content of a slice that exceeds a limit must count towards the limits, too.
func TestLastGoodFormsKeepTheBounds(t *testing.T) {
	full := sliceOf(t, "", "IPv4", "web", `"endpoints":[`+many(1000)+`]`)
	k := newKnown()
	for round := range 3 {
		all := newCollection()
		for i := range maxAll / 1000 {
			one := *full
			one.Metadata.Name = fmt.Sprint("r", round, "-", i)
			all.put(&one, nil, nil)
		}
		for name, old := range k.slices {
			one := new(slice)
			one.Metadata.Name = name
			all.put(one, errors.New("it does not parse"), old)
		}
		k.replace(all, time.Now())
	}
	if k.endpoints > maxAll {
		t.Errorf("%d endpoints after three lists, want at most %d", k.endpoints, maxAll)
	}
}

// A slice in memory must keep only the fields that are used, even if its event was large.
func TestASliceKeepsNothingOfItsEvent(t *testing.T) {
	const size = 1 << 20
	long := strings.Repeat("x", size)
	for what, swap := range map[string][2]string{
		"message":    {`"object":{`, `"object":{"message":"` + long + `",`},
		"version":    {`"resourceVersion":"8"`, `"resourceVersion":"` + long + `"`},
		"annotation": {`"metadata":{`, `"metadata":{"annotations":{"k8s.io/initial-events-end":"` + long + `"},`},
		"name":       {`"name":"a`, `"name":"` + long},
	} {
		k := newKnown()
		before := heap()
		for i := range 20 {
			e := new(event)
			text := strings.Replace(at("ADDED", fmt.Sprint("a", i), "10.0.0.1"), swap[0], swap[1], 1)
			if err := json.Unmarshal([]byte(text), e); err != nil {
				t.Fatal(err)
			}
			k.change(&e.Object.slice, e.problem)
		}
		if grown := heap() - before; grown > 5*size {
			t.Errorf("20 slices with a long %s keep %d KiB", what, grown>>10)
		}
		runtime.KeepAlive(k)
	}
}
