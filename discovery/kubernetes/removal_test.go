package kubernetes

import (
	"io"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// If all slices of a Service are deleted, perhaps one after another, all of them must stay in use
// until 10 s after the last deletion.
func TestSlicesAreDeletedOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeAPIServer{}
		s.serve = func(n int, _ url.Values, w io.Writer, done <-chan struct{}) int {
			writeAll(w, sliceEvent("ADDED", "a", "10.0.0.1"), sliceEvent("ADDED", "b", "10.0.0.2"), bookmark("7", true))
			time.Sleep(time.Second)
			writeAll(w, sliceEvent("DELETED", "a", ""))
			time.Sleep(8 * time.Second)
			writeAll(w, sliceEvent("DELETED", "b", ""))
			return waitUntilDone(done)
		}
		l, stop := startSource(t, s, query{})
		time.Sleep(18 * time.Second)
		if got := formatEndpoints(l.answer()); got != "0/10.0.0.1:80=healthy 0/10.0.0.2:80=healthy" || strings.Contains(l.takeReports(), "fail") {
			t.Errorf("9 s after the last slice the answer is %q", got)
		}
		time.Sleep(1100 * time.Millisecond)
		if got := l.takeReports(); !strings.Contains(got, "19s fail kubernetes") && !strings.Contains(got, "19s fail no EndpointSlice of web.shop") {
			t.Errorf("10 s after the last slice the receiver got %q", got)
		}
		stop()
	})
}

// The source may notice the last deletion late, when a watch ends with 410 and the next watch
// begins without the slice. All slices must nevertheless stay in use for 10 s.
func TestLastSliceIsMissingFromNextWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeAPIServer{}
		s.serve = func(n int, _ url.Values, w io.Writer, done <-chan struct{}) int {
			if n > 0 {
				writeAll(w, bookmark("20", true))
				return waitUntilDone(done)
			}
			writeAll(w, sliceEvent("ADDED", "a", "10.0.0.1"), sliceEvent("ADDED", "b", "10.0.0.2"), bookmark("7", true))
			time.Sleep(time.Second)
			writeAll(w, sliceEvent("DELETED", "a", ""))
			time.Sleep(8 * time.Second)
			writeAll(w, `{"type":"ERROR","object":{"code":410}}`+"\n")
			return 0
		}
		l, stop := startSource(t, s, query{})
		time.Sleep(18 * time.Second)
		if got := formatEndpoints(l.answer()); got != "0/10.0.0.1:80=healthy 0/10.0.0.2:80=healthy" || strings.Contains(l.takeReports(), "fail") {
			t.Errorf("9 s after the last slice the answer is %q", got)
		}
		time.Sleep(3 * time.Second)
		if got := l.takeReports(); !strings.Contains(got, "fail no EndpointSlice of web.shop") {
			t.Errorf("12 s after the last slice the receiver got %q", got)
		}
		stop()
	})
}

// A slice that is deleted before the server becomes unreachable must expire after 10 s. The update
// without it must not confirm the other slices.
func TestDeletedSliceExpiresWhileServerIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeAPIServer{}
		s.serve = func(n int, _ url.Values, w io.Writer, _ <-chan struct{}) int {
			if n > 0 {
				return -1
			}
			writeAll(w, sliceEvent("ADDED", "a", "10.0.0.1"), sliceEvent("ADDED", "b", "10.0.0.2"), bookmark("7", true))
			time.Sleep(time.Second)
			writeAll(w, sliceEvent("DELETED", "a", ""))
			time.Sleep(time.Second)
			return 0
		}
		l, stop := startSource(t, s, query{})
		time.Sleep(10500 * time.Millisecond)
		if got := formatEndpoints(l.answer()); got != "0/10.0.0.1:80=healthy 0/10.0.0.2:80=healthy" {
			t.Errorf("9.5 s after the slice was deleted the answer is %s", got)
		}
		_ = l.takeReports()
		time.Sleep(time.Second)
		if got := l.takeReports(); !strings.Contains(got, "11s update 0/10.0.0.2:80=healthy\n11s doubt since 1.05s: ") {
			t.Errorf("10 s after the slice was deleted the receiver got %q", got)
		}
		time.Sleep(time.Hour)
		if got := l.takeReports(); strings.Contains(got, "update") || strings.Contains(got, "confirm") || !strings.Contains(got, "doubt since 1.05s") {
			t.Errorf("in the next hour the receiver got %.500q, want only the doubt", got)
		}
		stop()
	})
}

func TestOneOfSeveralSlicesIsDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeAPIServer{}
		s.serve = func(n int, _ url.Values, w io.Writer, done <-chan struct{}) int {
			writeAll(w, sliceEvent("ADDED", "a", "10.0.0.1"), sliceEvent("ADDED", "b", "10.0.0.2"), sliceEvent("ADDED", "c", "10.0.0.3"), bookmark("7", true))
			writeAll(w, sliceEvent("DELETED", "a", ""))
			time.Sleep(8 * time.Second)
			writeAll(w, sliceEvent("DELETED", "b", ""))
			return waitUntilDone(done)
		}
		l, stop := startSource(t, s, query{})
		time.Sleep(11 * time.Second)
		if got := formatEndpoints(l.answer()); got != "0/10.0.0.2:80=healthy 0/10.0.0.3:80=healthy" {
			t.Errorf("after 11 s the answer is %q", got)
		}
		time.Sleep(8 * time.Second)
		if got := formatEndpoints(l.answer()); got != "0/10.0.0.3:80=healthy" {
			t.Errorf("after 19 s the answer is %q", got)
		}
		stop()
	})
}

// A Service is deleted and created again. Its slices have new names, and the first of them is
// empty. Each answer must contain the endpoint that stays, so that the connection to this endpoint
// is not lost.
func TestServiceIsCreatedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeAPIServer{}
		s.serve = func(n int, _ url.Values, w io.Writer, done <-chan struct{}) int {
			writeAll(w, sliceEvent("ADDED", "a", "10.0.0.1,10.0.0.2"), bookmark("7", true))
			time.Sleep(time.Second)
			writeAll(w, sliceEvent("DELETED", "a", ""))
			time.Sleep(7 * time.Second)
			writeAll(w, sliceEvent("ADDED", "b", ""))
			time.Sleep(time.Second)
			writeAll(w, sliceEvent("MODIFIED", "b", "10.0.0.2,10.0.0.3"))
			return waitUntilDone(done)
		}
		l, stop := startSource(t, s, query{})
		time.Sleep(time.Minute)
		for _, line := range strings.Split(l.takeReports(), "\n") {
			if !strings.Contains(line, "10.0.0.2:80=healthy") {
				t.Errorf("the receiver got %q, want the remaining endpoint in it", line)
			}
		}
		if got := formatEndpoints(l.answer()); got != "0/10.0.0.2:80=healthy 0/10.0.0.3:80=healthy" {
			t.Errorf("in the end the answer is %q", got)
		}
		stop()
	})
}

func TestReasonForMissingSlices(t *testing.T) {
	for want, services := range map[string]map[string]string{
		defaultReason:             nil,
		"there is no Service web": {},
		"has the type ExternalName, and no endpoints: it is an alias of db.example.com; want a target for that, such as failover:///db.example.com": {"web": `{"kind":"Service","spec":{"type":"ExternalName","externalName":"db.example.com"}}`},
		"Service web has no selector":                     {"web": `{"kind":"Service","spec":{"type":"ClusterIP"}}`},
		"Service web has no EndpointSlices yet":           {"web": `{"kind":"Service","spec":{"selector":{"app":"web"}}}`},
		"or it has the type ExternalName, or no selector": {"web": `[` + strings.Repeat("[", 1000)},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &fakeAPIServer{services: services, serve: func(n int, _ url.Values, w io.Writer, done <-chan struct{}) int {
				writeAll(w, bookmark("7", true))
				return waitUntilDone(done)
			}}
			l, stop := startSource(t, s, query{})
			time.Sleep(3 * time.Second)
			if got := l.takeReports(); !strings.Contains(got, "fail no EndpointSlice of web.shop: ") || !strings.Contains(got, want) {
				t.Errorf("the receiver got %q, want %q", got, want)
			}
			stop()
		})
	}
}
