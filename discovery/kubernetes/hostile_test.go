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
		"a node":      sliceOf(t, "a", "IPv4", "web", `"endpoints":[{"addresses":["10.0.0.1"],"nodeName":"`+longText+`"}]`),
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
