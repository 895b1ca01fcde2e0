package kubernetes

import (
	"io"
	"net/url"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Targets that differ only in the port, or in the endpoints that they use, must share a watch. The
// watch must end 30 s after the last of these targets was closed.
func TestTargetsShareWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended atomic.Int32
		s := &fakeAPIServer{}
		s.serve = func(n int, _ url.Values, w io.Writer, done <-chan struct{}) int {
			writeAll(w, sliceEvent("ADDED", "a", "10.0.0.1"), bookmark("7", true))
			time.Sleep(time.Second)
			writeAll(w, sliceEvent("MODIFIED", "a", "10.0.0.2"))
			<-done
			ended.Add(1)
			return 0
		}
		var stops []func()
		var listeners []*reportLog
		for _, q := range []query{{}, {port: "grpc"}, {port: "8080"}, {neverTerminating: true}, {family: "IPv4"}, {family: "IPv6"}, {}} {
			l, stop := startSource(t, s, q)
			listeners, stops = append(listeners, l), append(stops, stop)
			synctest.Wait()
		}
		time.Sleep(2 * time.Second)
		lateListener, stop := startSource(t, s, query{port: "grpc", neverTerminating: true})
		stops = append(stops, stop)
		if got := lateListener.takeReports(); got != "0s update 0/10.0.0.2:80=healthy" {
			t.Errorf("a later target received %q", got)
		}
		for i, want := range []string{"0/10.0.0.2:80=healthy", "0/10.0.0.2:80=healthy", "0/10.0.0.2:8080=healthy", "0/10.0.0.2:80=healthy", "0/10.0.0.2:80=healthy", "", "0/10.0.0.2:80=healthy"} {
			if got := formatEndpoints(listeners[i].answer()); got != want {
				t.Errorf("target %d has the answer %s, want %s", i, got, want)
			}
		}
		if kinds, _ := s.requests(); kinds != "all" {
			t.Errorf("the requests are %s, want one watch", kinds)
		}
		other, stopOther := startSource(t, s, query{services: "api"})
		_ = other
		synctest.Wait()
		if kinds, _ := s.requests(); kinds != "all all" {
			t.Errorf("with another Service the requests are %s, want two watches", kinds)
		}
		for i, stop := range append(stops, stopOther) {
			if i == len(stops)-1 {
				go stop()
				time.Sleep(linger - time.Second)
				if ended.Load() != 0 {
					t.Error("the watch ended less than 30 s after its last user")
				}
				time.Sleep(2 * time.Second)
				if ended.Load() != 1 {
					t.Error("the watch has not ended 31 s after its last user")
				}
				continue
			}
			go stop()
		}
		time.Sleep(time.Minute)
		clients.Lock()
		defer clients.Unlock()
		if clients.byServer[server{host: "http://x", transport: s}] != nil {
			t.Error("the server was not removed")
		}
	})
}
