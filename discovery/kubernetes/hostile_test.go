package kubernetes

import (
	"fmt"
	"io"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A bookmark must confirm the known slices. If there are no slices, it must not confirm the last
// answer, whose slices no longer exist.
func TestBookmarkAfterFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeAPIServer{}
		s.serve = func(n int, _ url.Values, w io.Writer, done <-chan struct{}) int {
			if n > 0 && n < 3 {
				return -1
			}
			if n == 0 {
				writeAll(w, sliceEvent("ADDED", "a", "10.0.0.1"), bookmark("7", true), sliceEvent("DELETED", "a", ""))
				time.Sleep(time.Minute)
				writeAll(w, bookmark("8", false))
				time.Sleep(time.Second)
				return 0
			}
			writeAll(w, bookmark("9", false))
			return waitUntilDone(done)
		}
		l, stop := startSource(t, s, query{})
		time.Sleep(60500 * time.Millisecond)
		if got := l.takeReports(); strings.Contains(got, "confirm") || !strings.Contains(got, "10s fail no EndpointSlice") {
			t.Errorf("the receiver got %q, want a failure that the bookmark does not end", got)
		}
		time.Sleep(10 * time.Second)
		got := l.takeReports()
		// The failure and the end of the doubt are reported at the same moment, in any order.
		end := got[strings.LastIndex(got, "doubt")+1:]
		if lines := strings.Split(got, "\n"); strings.Contains(got, "confirm") || !strings.Contains(lines[0], "doubt") || !strings.Contains(got, "fail no EndpointSlice") || !strings.Contains(end, "<nil>") {
			t.Errorf("after the server is back the receiver got %q, want the same failure and no doubt", got)
		}
		stop()
	})
}

func TestInvalidVersions(t *testing.T) {
	for what, version := range map[string]string{"long": strings.Repeat("9", 1<<20), "none": ""} {
		for _, atInitialEnd := range []bool{true, false} {
			t.Run(fmt.Sprint(what, " at the beginning ", atInitialEnd), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := &fakeAPIServer{}
					s.serve = func(n int, _ url.Values, w io.Writer, done <-chan struct{}) int {
						if n > 0 {
							return waitUntilDone(done)
						}
						if atInitialEnd {
							writeAll(w, sliceEvent("ADDED", "a", "10.0.0.1"), bookmark(version, true))
							return 0
						}
						writeAll(w, sliceEvent("ADDED", "a", "10.0.0.1"), bookmark("7", true), bookmark(version, false))
						return 0
					}
					l, stop := startSource(t, s, query{})
					time.Sleep(10 * time.Second)
					want := "all all"
					if !atInitialEnd && version == "" {
						want = "all 7"
					}
					if kinds, _ := s.requests(); !strings.HasPrefix(kinds, want) {
						t.Errorf("the requests are %.100s, want %s", kinds, want)
					}
					if got := formatEndpoints(l.answer()); got != "0/10.0.0.1:80=healthy" {
						t.Errorf("the answer is %s", got)
					}
					stop()
				})
			})
		}
	}
}

// A slice with a string that is longer than the API allows must be left out, with a short note.
func TestLongTexts(t *testing.T) {
	longText := strings.Repeat("x", 300_000)
	for what, sl := range map[string]*slice{
		"a name":      sliceOf(t, longText, "IPv4", "web", `"endpoints":[]`),
		"a type":      sliceOf(t, "a", longText, "web", `"endpoints":[]`),
		"a label":     sliceOf(t, "a", "IPv4", `web ,"understudy.dev/weight":"`+longText+`"`, `"endpoints":[]`),
		"an address":  sliceOf(t, "a", "IPv4", "web", `"endpoints":[{"addresses":["`+longText+`"]}]`),
		"a uid":       sliceOf(t, "a", "IPv4", "web", `"endpoints":[{"addresses":["10.0.0.1"],"targetRef":{"uid":"`+longText+`"}}]`),
		"a zone":      sliceOf(t, "a", "IPv4", "web", `"endpoints":[{"addresses":["10.0.0.1"],"zone":"`+longText+`"}]`),
		"a hint":      sliceOf(t, "a", "IPv4", "web", `"endpoints":[{"addresses":["10.0.0.1"],"hints":{"forZones":[{"name":"`+longText+`"}]}}]`),
		"a port":      sliceOf(t, "a", "IPv4", "web", `"endpoints":[],"ports":[{"name":"`+longText+`"}]`),
		"a protocol":  sliceOf(t, "a", "IPv4", "web", `"endpoints":[],"ports":[{"appProtocol":"`+longText+`"}]`),
		"a transport": sliceOf(t, "a", "IPv4", "web", `"endpoints":[],"ports":[{"protocol":"`+longText+`"}]`),
	} {
		k := newKnownSlices()
		k.put(sl, nil, nil)
		if len(k.slices) != 0 {
			t.Errorf("%s of 300,000 bytes is accepted", what)
		}
		for _, note := range k.snapshot().notes {
			if len(note) > 400 || !strings.Contains(note, "a string of more than 253 bytes") {
				t.Errorf("%s: the note is %.500s", what, note)
			}
		}
	}
	hints := sliceOf(t, "a", "IPv4", "web", `"endpoints":[{"addresses":["10.0.0.1"],"hints":{"forZones":[{"name":"a"}`+strings.Repeat(`,{"name":"a"}`, 1000)+`]}}]`)
	if n := len(hints.endpoints[0].forZones); n != maxHints {
		t.Errorf("%d hints, want %d", n, maxHints)
	}
	if n := len(sliceOf(t, "a", "IPv4", "web", `"endpoints":[{}`+strings.Repeat(`,{}`, 100_000)+`]`).endpoints); n != maxEndpoints+1 {
		t.Errorf("%d endpoints, want one more than %d", n, maxEndpoints)
	}
}

// Whatever an API server sends, the valid slices must be used, in the same watch, and memory must
// stay bounded.
func TestHostileEvents(t *testing.T) {
	nested := strings.Repeat(`{"a":[`, 4000) + strings.Repeat(`]}`, 4000)
	const valid = "0/10.0.0.1:80=healthy 0/10.0.0.2:80=healthy"
	for what, test := range map[string]struct {
		text     string
		requests string
		want     string
		reported string
	}{
		"10,000 endpoints":       {sliceEvent("ADDED", "x", manyEndpoints(10_000)), "all", valid, `slice "x" is ignored: it has more than 1000 endpoints`},
		"nested objects":         {`{"type":"ADDED","object":{"x":` + nested + `,"metadata":{"name":` + nested + `}}}` + "\n", "all", valid, "it has a JSON object for name"},
		"wrong kinds":            {`{"type":"ADDED","object":{"kind":"Pod","metadata":{"name":"x"},"spec":{}}}` + "\n" + `{"type":"MODIFIED","object":{"metadata":{"name":"x","labels":7}}}` + "\n", "all", valid, "it has a JSON number for labels"},
		"arrays for objects":     {sliceEvent("ADDED", "x", `{"addresses":{},"conditions":[],"hints":[1],"targetRef":"u"}`), "all", valid, "it has a JSON object for addresses"},
		"the same slice twice":   {sliceEvent("ADDED", "a", "10.0.0.1") + sliceEvent("ADDED", "a", "10.0.0.1"), "all", valid, ""},
		"another slice with it":  {sliceEvent("ADDED", "c", "10.0.0.1,10.0.0.1"), "all", valid, ""},
		"deletion of no slice":   {sliceEvent("DELETED", "y", "") + `{"type":"DELETED","object":{}}`, "all", valid, ""},
		"a bookmark of the end":  {bookmark("9", true), "all", valid, ""},
		"a bookmark of nothing":  {`{"type":"BOOKMARK","object":null}` + "\n", "all", valid, ""},
		"a string for an event":  {`"ADDED"` + "\n", "all", valid, "it has a JSON string for it"},
		"an unknown type":        {strings.Repeat(`{"type":"RENAMED","object":{"metadata":{"name":"a","resourceVersion":"1"}}}`+"\n", 1000), "all", valid, `the unknown type "RENAMED" has no effect`},
		"410 Gone":               {`{"type":"ERROR","object":{"code":410}}`, "all all", valid, ""},
		"a page of HTML":         {"<html>502", "all 7", valid, "the API server sends invalid JSON: invalid character"},
		"nested beyond reason":   {`{"x":` + strings.Repeat("[", 100_000), "all 7", valid, "exceeded max depth"},
		"an event of 20 MiB":     {`{"type":"` + strings.Repeat("a", 20<<20) + `"}` + "\n", "all", valid, "it has more than 8 MiB"},
		"an event without end":   {`{"type":"` + strings.Repeat("a", 20<<20), "all 7", valid, ""},
		"numbers for conditions": {sliceEvent("ADDED", "x", `{"addresses":["10.0.0.9"],"conditions":{"ready":1}}`), "all", valid, "it has a JSON number for ready"},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &fakeAPIServer{}
				s.serve = func(n int, q url.Values, w io.Writer, done <-chan struct{}) int {
					first, version := sliceEvent("ADDED", "a", "10.0.0.1"), bookmark("7", true)
					if n == 0 {
						first = strings.ReplaceAll(first, `"resourceVersion":"8"`, `"resourceVersion":"7"`)
						for i := range len(first) { // the first event arrives byte by byte
							writeAll(w, first[i:i+1])
						}
						writeAll(w, version, strings.ReplaceAll(test.text, `"resourceVersion":"8"`, `"resourceVersion":"7"`))
						if test.requests != "all" {
							return 0
						}
					} else if q.Get("resourceVersion") == "" {
						writeAll(w, first, version)
					}
					writeAll(w, sliceEvent("ADDED", "b", "10.0.0.2"))
					return waitUntilDone(done)
				}
				l, stop := startSource(t, s, query{})
				time.Sleep(3 * time.Second)
				kinds, _ := s.requests()
				a := l.answer()
				reported := l.takeReports() + strings.Join(a.Notes, "\n")
				if formatEndpoints(a) != test.want || kinds != test.requests || !strings.Contains(reported, test.reported) || len(a.Notes) > 2 {
					t.Errorf("the answer is %s, after the requests %s and the reports %.2000s", formatEndpoints(a), kinds, reported)
				}
				stop()
			})
		})
	}
}
